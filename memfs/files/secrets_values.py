"""Judging a value: whether a token, a password or a long word is made at random or made of words.

Owns these judgements for the rules of ``memfs.files.secrets_rules``. Each looks at one bounded value and takes time in
proportion to its length. Must not know files, items or what a finding is.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter

_DIGIT = re.compile("[0-9]")
_MARK = re.compile(r"[!@#$%^&*+=?~]")
_JOINTS = re.compile(r"[-_.+/=:]+")
_WORD = re.compile(
    r"[a-z]{1,15}|[A-Z][a-z]{1,14}|[A-Z]{1,12}|[0-9]{1,8}|[A-Za-z]{1,6}[0-9]{1,3}|[0-9]{1,2}[A-Za-z]{1,5}"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_CONTINUATION = re.compile(r"ct-[0-9]{1,12}-[0-9a-f]{32}")  # names kept state, in the same folder
_ATTRIBUTE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)+")
_REFERENCE = re.compile(
    r"[$%{<*@&!/~#\[]|\.{1,2}/|(?:env|vault|file|ssm|op|ref|secret|secrets|arn|http|https|process|os|config|settings|self"
    r"|sha\d*|md5|uuid)[.:/]",
    re.IGNORECASE,
)
_STAND_IN = re.compile(
    r"your|change[-_]?me|place[-_]?holder|redact|x{4}|\*{3}|\.{3}|<|\$\{|\{\{|://|insert[-_]|replace[-_]", re.IGNORECASE
)
_VARIABLE = re.compile(r"[a-z_][A-Za-z0-9_]*(?:_|[a-z][A-Z])[A-Za-z0-9_]*")
_NAMED_AS = re.compile(r"passw|passwd|pwd|secret|token|api_?key", re.IGNORECASE)
_NO_SECRET_AFTER = re.compile(
    r"(?:next|page|continuation|cursor|csrf|xsrf|sync|resume|idempotency|public|max|min|cache|foreign|primary|sort|partition"
    r"|count|per|eos|bos|pad|unk|cls|sep|stop|design)[ _.-]?$",
    re.IGNORECASE,
)
_NO_SECRET_BEFORE = re.compile(
    r"[_-]?(?:id|ids|name|names|file|files|path|dir|url|uri|arn|hash|sha\d*|digest|md5|checksum|fingerprint|type|kind|len"
    r"|length|size|count|limit|usage|ttl|at|age|expiry|expires|expires_in|policy|hint|field|label|version|format|prefix"
    r"|suffix|env|var|ref|refs|index|column|budget|algorithm|alg|rotation|manager|store|provider|scanner|scanning)$",
    re.IGNORECASE,
)
_SHORTEST_FULL_TOKEN = 30
_RANDOM_BITS = 3.0
_WARN_BITS = 4.2
_RUN_BITS = 3.6
_LONG_RUN = 16
_TRAILING = ".,;:!?)"


def made_of_words(tail: str) -> bool:
    """Whether a text is words and small numbers put together, such as a slug, a CSS class or a placeholder.

    A long tail is a token whatever it is made of: nobody writes thirty characters to stand for one.
    """
    parts = [part for part in _JOINTS.split(tail) if part]
    if len(parts) == 1 and len(tail) >= _SHORTEST_FULL_TOKEN:
        return False
    return all(_WORD.fullmatch(part) for part in parts)


def is_random(tail: str) -> bool:
    """Whether what follows a well-known prefix is a token and not the rest of a name."""
    return not made_of_words(tail)


def is_digits_and_letters(tail: str) -> bool:
    """Whether a bare run of letters and digits is a token: long, or mixed."""
    return len(tail) >= 40 or (any(map(str.isdigit, tail)) and any(map(str.isalpha, tail)) and is_random(tail))


def is_password_in_url(value: str) -> bool:
    """Whether the part between ``:`` and ``@`` is a password and not a stand-in for one."""
    if value[0] in "$<{[%*" or "..." in value or "${" in value or "…" in value:
        return False
    return not (value.isupper() and value.isalpha()) and not set(value.lower()) <= set("x*")


def is_basic_credentials(value: str) -> bool:
    """Whether base64 text decodes to ``user:password``."""
    try:
        plain = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    return b":" in plain and plain.isascii() and plain.decode("ascii").isprintable()


def is_option_value(value: str) -> bool:
    """Whether the value of a password option is one and not a stand-in."""
    if _REFERENCE.match(value) or _STAND_IN.search(value) or ("/" in value and not _is_mixed(value)):
        return False
    return _is_password(value, quoted=False, told=False)


def is_bearer(value: str) -> bool:
    """Whether what follows ``Bearer`` is an opaque token."""
    return any(map(str.isdigit, value)) and not _STAND_IN.search(value) and is_random(value)


def may_be_secret(value: str, quoted: bool) -> bool:
    """Whether a value is worth a closer look: what is all letters is a word, unless it is quoted and has marks."""
    return _DIGIT.search(value) is not None or (quoted and _MARK.search(value) is not None)


def is_assigned_secret(name: str, before: str, after: str, value: str, quoted: bool, told: bool) -> bool:
    """Whether ``name = value`` gives a secret away.

    Args:
        name: the word that makes it suspicious, such as ``password`` or ``api_key``.
        before: what stands in front of the word.
        after: the rest of the name behind it.
        value: what is assigned.
        quoted: the value stands in quotes.
        told: it is told in prose ("the password is ..."), so only an unmistakable value counts.
    """
    value = value.rstrip(_TRAILING)
    if _NO_SECRET_AFTER.search(before) or _NO_SECRET_BEFORE.search(after):
        return False
    if _REFERENCE.match(value) or _STAND_IN.search(value) or _UUID.fullmatch(value) or _CONTINUATION.fullmatch(value):
        return False
    if not quoted and _is_variable(name, value):
        return False
    if name.lower().startswith("pass") or name.lower() == "pwd":
        return _is_password(value, quoted, told)
    return _is_key(value)


def _is_variable(name: str, value: str) -> bool:
    """Whether an unquoted value is a name of something in a program: ``args.password``, ``new_token``."""
    if _ATTRIBUTE.fullmatch(value) or value.lower().rstrip("0123456789") == name.lower():
        return True
    return bool(_VARIABLE.fullmatch(value) and _NAMED_AS.search(value))


def _is_password(value: str, quoted: bool, told: bool) -> bool:
    if len(value) < (8 if told else 6 if quoted else 7) or not any(map(str.isalpha, value)):
        return False
    parts = [part for part in _JOINTS.split(value) if part]
    if (told or len(parts) > 1) and made_of_words(value):
        return False
    digit = _DIGIT.search(value) is not None
    mark = _MARK.search(value) is not None
    if told:
        return digit and (mark or (value != value.lower() and value != value.upper()))
    return digit or (mark and quoted)


def _is_key(value: str) -> bool:
    if len(value) < 16 or made_of_words(value) or ("/" in value and not _is_mixed(value)):
        return False
    digits = sum(map(str.isdigit, value))
    return 0 < digits < len(value) and entropy(value) >= _RANDOM_BITS


def is_likely_random(word: str) -> bool:
    """Whether a long word has so little order that it may be a key nobody has a rule for."""
    run = max(_JOINTS.split(word), key=len)
    return len(run) >= _LONG_RUN and _is_mixed(run) and entropy(word) >= _WARN_BITS and entropy(run) >= _RUN_BITS


def entropy(value: str) -> float:
    """Shannon's measure in bits a character."""
    total = len(value)
    return -sum(count / total * math.log2(count / total) for count in Counter(value).values())


def _is_mixed(value: str) -> bool:
    return any(map(str.isupper, value)) and any(map(str.islower, value)) and any(map(str.isdigit, value))
