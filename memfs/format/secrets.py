"""Finds keys, passwords and tokens in texts, items and files before a byte of them is stored.

The rules are the rows of ``secret_rules.json``. An error names rule and line, never the value. A person can allow a
secret by giving a reason, which is recorded.
"""

from __future__ import annotations

import binascii
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import accumulate
from pathlib import Path

from memfs.dataclass import NamedTuple
from memfs.errors import ContentError, MemfsError, SecretDetected
from memfs.format.codec import parse
from memfs.format.plain import DOCUMENT_PARTS
from memfs.model.item import MemoryItem
from memfs.startup import Any, json, regex

_DIGIT = "[0-9]"
_MARK = r"[!@#$%^&*+=?~]"
_JOINTS = r"[-_.+/=:]+"
_WORD = r"[a-z]{1,15}|[A-Z][a-z]{1,14}|[A-Z]{1,12}|[0-9]{1,8}|[A-Za-z]{1,6}[0-9]{1,3}|[0-9]{1,2}[A-Za-z]{1,5}"
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_CONTINUATION = r"ct-[0-9]{1,12}-[0-9a-f]{32}"  # names kept state, in the same folder
_ATTRIBUTE = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)+"
_REFERENCE = (
    r"(?i)"
    r"[$%{<*@&!/~#\[]|\.{1,2}/|(?:env|vault|file|ssm|op|ref|secret|secrets|arn|http|https|process|os|config|settings|self"
    r"|sha\d*|md5|uuid)[.:/]"
)
_STAND_IN = r"(?i)your|change[-_]?me|place[-_]?holder|redact|x{4}|\*{3}|\.{3}|<|\$\{|\{\{|://|insert[-_]|replace[-_]"
_VARIABLE = r"[a-z_][A-Za-z0-9_]*(?:_|[a-z][A-Z])[A-Za-z0-9_]*"
_NAMED_AS = r"(?i)passw|passwd|pwd|secret|token|api_?key"
_HARMLESS_AFTER = (
    r"(?i)"
    r"(?:next|page|continuation|cursor|csrf|xsrf|sync|resume|idempotency|public|max|min|cache|foreign|primary|sort|partition"
    r"|count|per|eos|bos|pad|unk|cls|sep|stop|design)[ _.-]?$"
)
_HARMLESS_BEFORE = (
    r"(?i)"
    r"[_-]?(?:id|ids|name|names|file|files|path|dir|url|uri|arn|hash|sha\d*|digest|md5|checksum|fingerprint|type|kind|len"
    r"|length|size|count|limit|usage|ttl|at|age|expiry|expires|expires_in|policy|hint|field|label|version|format|prefix"
    r"|suffix|env|var|ref|refs|index|column|budget|algorithm|alg|rotation|manager|store|provider|scanner|scanning)$"
)
_KEYS = r"(?i)secret|key|token|credential"
_KEY_OF = r"(?ia)(?:api|access|auth|account|encryption|signing|private|master|service|secret)[ _-]?\Z"
_BEFORE = 20
_NAMED_TERM = (
    r"(?i)"
    r"1password|keepass|argon2|pbkdf2|bcrypt|scrypt|sha-?\d|md5|base64|oauth|auth0|utf-?8|ntlm|rfc|x509|pkcs|aes|hmac|k8s|s3\b"
    r"|\d+(?:st|nd|rd|th|[-_]?(?:char|letter|digit|bit|byte|sec|min|hour|day|week|month|year|zeichen|stellig|tage|stunden))"
)
_SHORTEST_FULL_TOKEN = 30
_RANDOM_BITS = 3.0
_WARN_BITS = 4.2
_RUN_BITS = 3.6
_LONG_RUN = 16


def made_of_words(tail: str) -> bool:
    """Whether a text is words and small numbers put together, such as a slug, a CSS class or a placeholder.

    A long tail is a token whatever it is made of: no one writes thirty characters as a placeholder.
    """
    parts = [part for part in re.split(_JOINTS, tail) if part]
    if len(parts) == 1 and len(tail) >= _SHORTEST_FULL_TOKEN:
        return False
    return all(re.fullmatch(_WORD, part) for part in parts)


Accept = Callable[["re.Match[str]"], bool]
"""Judges what a pattern matched: the part that it names."""


def is_random(match: re.Match[str]) -> bool:
    """Whether what follows a well-known prefix is a token and not the rest of a name."""
    return not made_of_words(match[1])


def is_digits_and_letters(match: re.Match[str]) -> bool:
    """Whether a bare run of letters and digits is a token: long, or mixed."""
    tail = match[1]
    return len(tail) >= 40 or (any(map(str.isdigit, tail)) and any(map(str.isalpha, tail)) and not made_of_words(tail))


def is_password_in_url(match: re.Match[str]) -> bool:
    """Whether the part between ``:`` and ``@`` is a password and not a placeholder for one."""
    value = match[1]
    if value[0] in "$<{[%*" or "..." in value or "${" in value or "…" in value:
        return False
    return not (value.isupper() and value.isalpha()) and not set(value.lower()) <= set("x*")


def is_basic_credentials(match: re.Match[str]) -> bool:
    """Whether base64 text decodes to ``user:password``."""
    value = match[1]
    try:
        plain = binascii.a2b_base64(value + "=" * (-len(value) % 4), strict_mode=True)
    except (binascii.Error, ValueError):
        return False
    return b":" in plain and plain.isascii() and plain.decode("ascii").isprintable()


def is_option_value(match: re.Match[str]) -> bool:
    """Whether the value of a password option is one and not a placeholder."""
    value = match[1]
    if re.match(_REFERENCE, value) or re.search(_STAND_IN, value) or ("/" in value and not _is_mixed(value)):
        return False
    return _is_password(value, quoted=False, stated=False)


def is_bearer(match: re.Match[str]) -> bool:
    """Whether what follows ``Bearer`` is an opaque token."""
    value = match[1]
    return any(map(str.isdigit, value)) and not re.search(_STAND_IN, value) and not made_of_words(value)


def is_assigned_secret(match: re.Match[str]) -> bool:
    """Whether ``name = value`` gives a secret away.

    The match has the word that makes it suspicious, such as ``password`` or ``api_key``, the rest of the name behind
    it, the sign between, a quote, and the value. Of what is stated in prose ("the password is ...") only an
    unmistakable value counts.
    """
    name, after, sign, quoted, value = match[1], match[2], match[3], bool(match[4]), match[5]
    # what is all letters is a word, unless it is quoted and has marks
    if not re.search(_DIGIT, value) and not (quoted and re.search(_MARK, value)):
        return False
    text, start = match.string, match.start()
    if text[match.end() : match.end() + 1] in ("(", "[") and not quoted:
        return False
    before = text[max(0, start - _BEFORE) : start]
    if name.lower() == "key" and not re.search(_KEY_OF, before):
        return False
    value, stated = value.rstrip(".,;:!?)"), not re.search("[:=\uff1a]", sign)
    if re.search(_HARMLESS_AFTER, before) or re.search(_HARMLESS_BEFORE, after):
        return False
    if (
        re.match(_REFERENCE, value)
        or re.search(_STAND_IN, value)
        or re.fullmatch(_UUID, value)
        or re.fullmatch(_CONTINUATION, value)
    ):
        return False
    if not quoted and _is_variable(name, value):
        return False
    return _is_key(value) if re.match(_KEYS, name) else _is_password(value, quoted, stated)


def _is_variable(name: str, value: str) -> bool:
    """Whether an unquoted value is a name of something in a program: ``args.password``, ``new_token``."""
    if re.fullmatch(_ATTRIBUTE, value) or value.lower().rstrip("0123456789") == name.lower():
        return True
    return bool(re.fullmatch(_VARIABLE, value) and re.search(_NAMED_AS, value))


def _is_password(value: str, quoted: bool, stated: bool) -> bool:
    if len(value) < (8 if stated else 6 if quoted else 7) or not any(map(str.isalpha, value)):
        return False
    parts = [part for part in re.split(_JOINTS, value) if part]
    if (stated or len(parts) > 1) and made_of_words(value):
        return False
    digit = re.search(_DIGIT, value) is not None
    mark = re.search(_MARK, value) is not None
    if stated:
        return digit and not re.match(_NAMED_TERM, value)
    return digit or (mark and quoted)


def _is_key(value: str) -> bool:
    if len(value) < 16 or made_of_words(value) or ("/" in value and not _is_mixed(value)):
        return False
    digits = sum(map(str.isdigit, value))
    return 0 < digits < len(value) and entropy(value) >= _RANDOM_BITS


def entropy(value: str) -> float:
    """Shannon's measure in bits a character."""
    total = len(value)
    return -sum(count / total * math.log2(count / total) for count in Counter(value).values())


def _is_mixed(value: str) -> bool:
    return any(map(str.isupper, value)) and any(map(str.islower, value)) and any(map(str.isdigit, value))


class SecretRule(NamedTuple):
    """One rule: what a secret of a sort looks like.

    ``id`` is its stable name and ``what`` its name in an error. One of ``words``, in lower case, must occur before
    ``pattern`` is tried; a pattern with a group names the part that ``accept`` judges. Each pattern is linear: bounded,
    or anchored so that two tries never walk the same characters.

    ``tokens`` are unbroken runs of characters that begin with one of their words, so they are looked for in long words
    only; so are those of ``inside``, with the word anywhere in them. ``contexts`` need what is around the value; each
    begins with one of its words, and is tried only there.
    """

    id: str
    what: str
    words: tuple[str, ...]
    pattern: str
    accept: Accept | None = None


LONG_WORD = r"[A-Za-z0-9_+/=.~%:@-]{16,}"
"""Every character that a token of the table can hold, and the shortest of them."""


_JUDGES: Mapping[str, Accept] = {
    "random": is_random,
    "digits_and_letters": is_digits_and_letters,
    "password_in_url": is_password_in_url,
    "basic_credentials": is_basic_credentials,
    "option_value": is_option_value,
    "bearer": is_bearer,
    "assigned_secret": is_assigned_secret,
}


def _rule(row: Mapping[str, Any]) -> SecretRule:
    """A row of the table: its ``pattern``, or the ``prefix`` of a token that nothing else has, and its ``tail``."""
    if "prefix" in row:
        pattern, judge = f"(?<![A-Za-z0-9]){row['prefix']}({row['tail']})", "random"
    else:
        pattern, judge = row["pattern"], row.get("judge", "")
    return SecretRule(row["id"], row["what"], tuple(row["words"]), pattern, _JUDGES.get(judge))


_TABLE = json.loads(Path(__file__).with_name("secret_rules.json").read_text(encoding="utf-8"))
TOKENS = tuple(map(_rule, _TABLE["tokens"]))
INSIDE = tuple(map(_rule, _TABLE["inside"]))
CONTEXTS = tuple(map(_rule, _TABLE["contexts"]))


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern, compiled when a text first asks for it: most rows never are."""
    return re.compile(pattern, re.ASCII)


ALLOWED = "secret_allowed"
"""The key below ``metadata`` that holds the reason why an item may keep what looks like a secret."""

_BEGINNING = regex(r"(?<![a-z0-9])(?=([a-z0-9]..))")
_BY_BEGINNING: dict[str, list[SecretRule]] = {}
for _row in TOKENS:
    for _word in _row.words:
        _BY_BEGINNING.setdefault(_word[:3], []).append(_row)
_INSIDE_CALLS = [(word, rule) for rule in INSIDE for word in rule.words]
_CONTEXT_CALLS = [(word, rule) for rule in CONTEXTS for word in rule.words]
_LONGEST_REASON = 200
_MOST = 20
_SHOWN_PART = 6
_BETWEEN = "\n\0\n"  # no rule reaches across it
_UNSEEN = "[\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff]"
_DOCUMENT_SUFFIXES = (".yaml", ".yml", ".json")
_COMMENT = rf"(?m)^[ \t]*#[ \t]*{ALLOWED}[ \t]*:[ \t]*(\S[^\n]*)"
_LONG_WORD = r"(?a)[A-Za-z0-9+/_=-]{24,200}"
_DIGEST_BEFORE = regex(
    r"(?:sha-?\d*|md5|digest|hash|checksum|integrity|fingerprint|commit|blob|etag|uuid|ulid|base64,)"
    r"[\"'`]?[ \t]*[:=,/-]?[ \t]*[\"'`]?$",
    re.IGNORECASE,
)
_HINT = (
    "take it out, and revoke it if anybody may have seen it; or give a reason why it may stay: --allow-secret REASON"
)
_HINT_FILE = (
    "take it out of the file, and revoke it if anybody may have seen it; or say why it may stay: "
    f"'metadata: {{{ALLOWED}: REASON}}' in an item, '# {ALLOWED}: REASON' in another file"
)


class SecretFinding(NamedTuple):
    """One suspicious place: which rule, what it is called, from where to where, in which line. Never the value."""

    rule: str
    what: str
    start: int
    end: int
    line: int


def find(text: str) -> list[SecretFinding]:
    """What looks like a secret in a text, in order; at most twenty places."""
    if not text:
        return []
    text = visible(text)
    found: dict[tuple[str, int], SecretFinding] = {}
    for match, rule in _matches(text):
        if len(found) >= _MOST:
            break
        if rule.accept is None or rule.accept(match):
            line = text.count("\n", 0, match.start()) + 1
            found.setdefault(
                (rule.id, match.end()), SecretFinding(rule.id, rule.what, match.start(), match.end(), line)
            )
    return sorted(found.values(), key=lambda finding: finding.start)


def _matches(text: str) -> Iterator[tuple[re.Match[str], SecretRule]]:
    """Where a row fits: of TOKENS and INSIDE those are searched for of which a long word has the beginning or a word;
    those of CONTEXTS are tried at each place where one of their words is.
    """
    words = "\n".join(compiled(LONG_WORD).findall(text))
    lowered = words.lower()
    called = [rule for word, rule in _INSIDE_CALLS if word in lowered]
    for beginning in set(_BEGINNING.findall(lowered)):
        called += _BY_BEGINNING.get(beginning, ())
    for rule in dict.fromkeys(called):
        if compiled(rule.pattern).search(words):
            yield from ((match, rule) for match in compiled(rule.pattern).finditer(text))
    lowered = text.lower()
    if len(lowered) != len(text):  # a few letters of other scripts have longer small ones
        lowered = "".join([letter.lower() if letter.isascii() else letter for letter in text])
    for word, rule in _CONTEXT_CALLS:
        at = lowered.find(word)
        while at >= 0:
            match = compiled(rule.pattern).match(text, at)
            if match:
                yield match, rule
            at = lowered.find(word, at + len(word))


def find_likely(text: str) -> list[SecretFinding]:
    """Long words without order for which there is no rule: worth a look, never refused. Digests are left out."""
    text = visible(text)
    found = []
    for match in re.finditer(_LONG_WORD, text):
        run = max(re.split(_JOINTS, match[0]), key=len)
        mixed = len(run) >= _LONG_RUN and _is_mixed(run)
        if not mixed or entropy(match[0]) < _WARN_BITS or entropy(run) < _RUN_BITS:
            continue
        if not _DIGEST_BEFORE.search(text, max(0, match.start() - 20), match.start()):
            line = text.count("\n", 0, match.start()) + 1
            found.append(SecretFinding("unordered-text", "a key or password", match.start(), match.end(), line))
    return found[:_MOST]


def visible(text: str) -> str:
    """The text without invisible characters, which would cut a key in two for the rules alone."""
    return text if text.isascii() else re.sub(_UNSEEN, "", text)


# -- refusing -----------------------------------------------------------------------------------------------------
def refuse_text(text: str, field: str = "") -> None:
    """Refuse a text that nothing can allow, such as a commit's message or a reason.

    Raises:
        SecretDetected: naming rule and line, never the value.
    """
    for finding in find(text):
        raise _error(finding, field=field or None, hint="leave it out")


def refuse_item(item: MemoryItem) -> None:
    """Refuse an item one of whose fields holds a secret, unless it says why (``metadata.secret_allowed``).

    Raises:
        SecretDetected: naming rule, field and the line in it, never the value.
    """
    allowed(item)


def _values_in_item(item: MemoryItem) -> Iterator[tuple[str, SecretFinding, str]]:
    """Every secret of an item: the field, the finding with its line in that field, and the value, which only
    comparisons may see.
    """
    parts = list(_texts(item))
    whole = _BETWEEN.join([text for _, text in parts])
    findings = find(whole)
    if not findings:
        return
    starts = [0, *accumulate(len(text) + len(_BETWEEN) for _, text in parts)]
    seen = visible(whole)
    for finding in findings:
        at = bisect_right(starts, finding.start) - 1
        line = finding.line - whole.count("\n", 0, starts[at])
        field = parts[at][0]
        named = field.partition(".")[0] if find(field) else field
        yield named, finding._replace(line=line), seen[finding.start : finding.end]


def refuse_file(data: bytes, path: str) -> str:
    """Refuse a file that holds a secret in its name or its bytes, comments included, unless it says why.

    Returns:
        The reason by which what was found may stay, "" where nothing was found.

    Raises:
        SecretDetected: naming path, rule and line, never the value.
    """
    found = found_in_file(data, path)
    if not found:
        return ""
    reason = reason_in_file(data, path)
    if not reason:
        raise secret_error(found[0], path)
    return reason


def secret_error(finding: SecretFinding, path: str) -> SecretDetected:
    """The error for a finding in a file."""
    return _error(finding, path=path, hint=_HINT_FILE)


def found_in_file(data: bytes, path: str) -> list[SecretFinding]:
    """Every secret in a file's name and bytes, allowed or not; what is there as an escape counts, too."""
    text = _decoded(data)
    found = find(text) or find(path)
    if not found and "\\" in text and path.endswith(_DOCUMENT_SUFFIXES):
        return found_in_value(_mapping(data, path) or {})
    return found


def found_in_value(value: Any) -> list[SecretFinding]:
    """Every secret in the texts of a plain value, without its place."""
    texts = "\n".join(text for _, text in _leaves(value, ""))
    return [SecretFinding(found.rule, found.what, 0, 0, 1) for found in find(texts)]


def _error(finding: SecretFinding, *, hint: str, path: str | None = None, field: str | None = None) -> SecretDetected:
    message = f"this looks like {finding.what} (rule {finding.rule} at line {finding.line})"
    return SecretDetected(message, path=path, line=finding.line if path else None, field=field, hint=hint)


# -- allowing -----------------------------------------------------------------------------------------------------
def reason_in(metadata: Mapping[str, Any]) -> str:
    """The reason why an item may keep a secret, "" where it gives none."""
    reason = metadata.get(ALLOWED)
    return reason.strip() if isinstance(reason, str) else ""


def reason_in_file(data: bytes, path: str) -> str:
    """The reason a file gives: an item below ``metadata``, another in a comment or a key; "" where it gives none."""
    mapping = _mapping(data, path) or {}
    metadata = mapping.get("metadata")
    reason = reason_in(metadata) if isinstance(metadata, dict) else ""
    if not reason and "/memories/" not in path and "/conventions/" not in path:
        comment = re.search(_COMMENT, _decoded(data))
        reason = comment[1].strip() if comment else reason_in(mapping)
    return "" if find(reason) else reason


def allowed(item: MemoryItem, reason: str = "") -> tuple[MemoryItem, str]:
    """The item, and the reason that lets a secret in it stay: its own, or the one given, which is then recorded in it.

    Returns:
        The item as it was, and "", where it holds nothing that needs a reason.

    Raises:
        SecretDetected: it holds a secret and there is no reason, or the reason holds one.
        ContentError: the reason is not valid, see ``check_reason``.
    """
    given = reason_in(item.metadata) or reason.strip()
    if given or reason:
        check_reason(given or reason)
    for field, finding, _ in _values_in_item(item):
        if not given:
            raise _error(finding, field=field, hint=_HINT)
        return item.replace(metadata={**item.metadata, ALLOWED: given}), given
    return item, ""


def refuse_new(item: MemoryItem, stored: MemoryItem | None) -> None:
    """Refuse a secret that the stored version of an item has not: a reason recorded there was given for others.

    Raises:
        SecretDetected: naming rule, field and the line in it, never the value.
    """
    known = {value for _, _, value in _values_in_item(stored)} if stored is not None else set()
    for field, finding, value in _values_in_item(item):
        if value not in known:
            raise _error(finding, field=field, hint=_HINT)


def check_reason(reason: str) -> None:
    """Refuse a reason that is not valid: it goes into the commit's message, so it is one short line without a secret.

    Raises:
        SecretDetected: it holds a secret.
        ContentError: it is blank, too long or of several lines.
    """
    refuse_text(reason, f"metadata.{ALLOWED}")
    if not reason.strip() or len(reason) > _LONGEST_REASON or "\n" in reason.strip():
        raise ContentError(
            "the reason must be one line", field=f"metadata.{ALLOWED}", hint=f"at most {_LONGEST_REASON} characters"
        )


# -- concealing ---------------------------------------------------------------------------------------------------
def conceal(error: MemfsError, data: bytes) -> MemfsError:
    """The error without what a file's secrets left in it: other errors quote the value they complain of."""
    text = _decoded(data)
    words = f"{error.message} {error.hint or ''} {error.field or ''}"
    for finding in find(text):
        value = text[finding.start : finding.end]
        if any(value[at : at + _SHOWN_PART] in words for at in range(len(value) - _SHOWN_PART + 1)):
            error.message = f"this value is wrong; it is not shown, as it looks like {finding.what}"
            error.args, error.field, error.hint = (error.message,), None, _HINT_FILE
            error.__cause__, error.__suppress_context__ = None, True
            break
    return error


# -- reading ------------------------------------------------------------------------------------------------------
def _decoded(data: bytes) -> str:
    """The bytes as text, whatever they are; UTF-16 reads well enough without its zeros."""
    return (data.replace(b"\0", b"") if b"\0" in data else data).decode("utf-8", "replace")


def _mapping(data: bytes, path: str) -> dict[str, Any] | None:
    if not path.endswith(_DOCUMENT_SUFFIXES):
        return None
    try:
        return parse(data, path, allow_invisible=True, parts=DOCUMENT_PARTS).mapping
    except ContentError:
        return None


def _texts(item: MemoryItem) -> Iterator[tuple[str, str]]:
    """Every text of an item with the field it is in; a value of a mapping after its key, which may give it away."""
    yield "content", item.content
    yield "title", item.title
    yield "id", item.id
    yield "type", item.memory_type
    yield "status", str(item.status)
    yield "trust", str(item.trust)
    for name in ("tags", "supersedes"):
        yield name, "\n".join(map(str, getattr(item, name)))
    for link in item.links:
        yield "links", f"{link.to} {link.relation}"
    origin = item.origin
    for name in ("speaker", "role", "agent", "session", "task", "tool", "phase"):
        yield f"origin.{name}", str(getattr(origin, name))
    for name in ("context", "metadata", "data"):
        mapping = getattr(item, name)
        if mapping:
            yield from _leaves(mapping, name)
    for conflict in item.conflicts:
        yield "conflicts", f"{conflict.field} {conflict.by}"
        yield from _leaves([conflict.kept, conflict.lost], "conflicts")


def _leaves(value: Any, field: str, key: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield field, f"{key}: {value}" if key else value
    elif depth > 64:
        return  # the codec refuses what is nested deeper
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield from _leaves(part, f"{field}.{name}" if field else str(name), str(name), depth + 1)
            if not isinstance(part, str):
                yield field, str(name)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _leaves(part, field, key, depth + 1)


HIDDEN = "[redacted]"
"""What replaces a text in which the end of its secrets is unknown."""
_KEY_BEGINS = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,20}-----"
_KEY_ENDS = regex(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,20}-----")
_REST_OF_WORD = regex(r"[A-Za-z0-9+/_=-]+")
_TRIES = 60


def redacted(text: str) -> str:
    """The text with the name of a rule in place of each secret, up to the end of its word or block."""
    parts, place = [], 0
    for begin in re.finditer(_KEY_BEGINS, text):  # private keys go up to their end, or that of the text
        if begin.start() >= place:
            close = _KEY_ENDS.search(text, begin.end())
            parts += [text[place : begin.start()], "[redacted: private-key]"]
            place = close.end() if close else len(text)
    text = "".join((*parts, text[place:]))
    for _ in range(_TRIES):
        found = find(text)
        if not found:
            return text
        text = visible(text)
        for finding in reversed(found):
            rest = _REST_OF_WORD.match(text, finding.end)
            end = rest.end() if rest else finding.end
            text = f"{text[: finding.start]}[redacted: {finding.rule}]{text[end:]}"
    return HIDDEN


def redacted_value(value: Any, key: str = "") -> Any:
    """A plain value with each text in it redacted; ``key`` is the name it has, which may give it away."""
    if isinstance(value, str):
        found = find(f"{key}: {value}") if key and redacted(value) == value else []
        return f"[redacted: {found[0].rule}]" if found else redacted(value)
    if isinstance(value, Mapping):
        return {redacted(str(name)): redacted_value(part, str(name)) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(redacted_value(part, key) for part in value)
    return value
