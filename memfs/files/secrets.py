"""Keys, passwords and tokens: found before a byte of them is kept anywhere (B6, faults row 19).

Owns the search in texts, items and files, the error that names rule and line but never the value, and the reason by
which a person lets one stay. The rules are ``memfs.files.secrets_rules``'s. Must not know the store, git or the index.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from memfs.errors import ContentError, MemfsError, SecretDetected
from memfs.files.plain import DOCUMENT_PARTS
from memfs.files.rendering import parse
from memfs.files.secrets_rules import CONTEXTS, INSIDE, LONG_WORD, TOKENS, Rule, compiled, compiled_anyhow
from memfs.files.secrets_values import is_likely_random
from memfs.model.item import MemoryItem

ALLOWED = "secret_allowed"
"""The key below ``metadata`` that holds the reason why an item may keep what looks like a secret."""

_BEGINNING = re.compile(r"(?<![a-z0-9])(?=([a-z0-9]..))")
_BY_BEGINNING: dict[str, list[Rule]] = {}
for _row in TOKENS:
    for _word in _row.words:
        _BY_BEGINNING.setdefault(_word[:3], []).append(_row)
_INSIDE_CALLS = [(word, rule) for rule in INSIDE for word in rule.words]
_CONTEXT_CALLS = [(word, rule) for rule in CONTEXTS for word in rule.words]
_LONGEST_REASON = 200
_MOST = 20
_SHOWN_PART = 6
_BETWEEN = "\n\0\n"  # no rule reaches across it
_UNSEEN = re.compile("[\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff]")
_DOCUMENT_SUFFIXES = (".yaml", ".yml", ".json")
_COMMENT = re.compile(rf"^[ \t]*#[ \t]*{ALLOWED}[ \t]*:[ \t]*(\S[^\n]*)", re.MULTILINE)
_LONG_WORD = re.compile(r"[A-Za-z0-9+/_=-]{24,200}", re.ASCII)
_DIGEST_BEFORE = re.compile(
    r"(?:sha-?\d*|md5|digest|hash|checksum|integrity|fingerprint|commit|blob|etag|uuid|ulid|base64,)"
    r"[\"'`]?[ \t]*[:=,/-]?[ \t]*[\"'`]?$",
    re.IGNORECASE,
)
_HINT = (
    "take it out, and revoke it if anybody may have seen it; or give a reason why it may stay: "
    "allow_secret=..., --allow-secret REASON"
)
_HINT_FILE = (
    "take it out of the file, and revoke it if anybody may have seen it; or say why it may stay: "
    f"'metadata: {{{ALLOWED}: REASON}}' in an item, '# {ALLOWED}: REASON' in another file"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One suspicious place: which rule, what it is called, from where to where, in which line. Never the value."""

    rule: str
    what: str
    start: int
    end: int
    line: int


def find(text: str) -> list[Finding]:
    """What looks like a secret in a text, in order; at most twenty places."""
    text = visible(text)
    words = "\n".join(compiled(LONG_WORD).findall(text))
    found: dict[tuple[str, int], Finding] = {}
    for match, rule in chain(_tokens(text, words), _contexts(text)):
        if len(found) >= _MOST:
            break
        if rule.accept is None or rule.accept(match):
            line = text.count("\n", 0, match.start()) + 1
            found.setdefault((rule.id, match.end()), Finding(rule.id, rule.what, match.start(), match.end(), line))
    return sorted(found.values(), key=lambda finding: finding.start)


def _tokens(text: str, words: str) -> Iterator[tuple[re.Match[str], Rule]]:
    """Where a row of TOKENS fits; the long words say which rows are worth a look at the whole text."""
    lowered = words.lower()
    called = [rule for word, rule in _INSIDE_CALLS if word in lowered]
    for beginning in set(_BEGINNING.findall(lowered)):
        called += _BY_BEGINNING.get(beginning, ())
    for rule in dict.fromkeys(called):
        if compiled(rule.pattern).search(words):
            yield from ((match, rule) for match in compiled(rule.pattern).finditer(text))


def _contexts(text: str) -> Iterator[tuple[re.Match[str], Rule]]:
    """Where a row of CONTEXTS fits, tried at each place where one of its words stands."""
    lowered = text.lower()
    if len(lowered) != len(text):  # a few letters of other scripts have longer small ones
        lowered = "".join([letter.lower() if letter.isascii() else letter for letter in text])
    for word, rule in _CONTEXT_CALLS:
        at = lowered.find(word)
        while at >= 0:
            match = compiled_anyhow(rule.pattern).match(text, at)
            if match:
                yield match, rule
            at = lowered.find(word, at + len(word))


def find_likely(text: str) -> list[Finding]:
    """Long words without order for which there is no rule: worth a look, never refused. Digests are left out."""
    text = visible(text)
    found = []
    for match in _LONG_WORD.finditer(text):
        if is_likely_random(match[0]) and not _DIGEST_BEFORE.search(text, max(0, match.start() - 20), match.start()):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Finding("unordered-text", "a key or password", match.start(), match.end(), line))
    return found[:_MOST]


def visible(text: str) -> str:
    """The text without characters that nobody sees and that would cut a key in two for the rules alone."""
    return text if text.isascii() else _UNSEEN.sub("", text)


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


def _found_in_item(item: MemoryItem) -> Iterator[tuple[str, Finding]]:
    """Every secret of an item: the field, and the finding with its line in that field."""
    for field, finding, _ in _values_in_item(item):
        yield field, finding


def _values_in_item(item: MemoryItem) -> Iterator[tuple[str, Finding, str]]:
    """As ``_found_in_item``, with the value, which only comparisons may see."""
    parts = list(_texts(item))
    starts, total = [], 0
    for _, text in parts:
        starts.append(total)
        total += len(text) + len(_BETWEEN)
    whole = _BETWEEN.join(text for _, text in parts)
    seen = visible(whole)
    for finding in find(whole):
        at = bisect_right(starts, finding.start) - 1
        line = finding.line - whole.count("\n", 0, starts[at])
        field = parts[at][0]
        named = field.partition(".")[0] if find(field) else field
        yield named, replace(finding, line=line), seen[finding.start : finding.end]


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


def secret_error(finding: Finding, path: str) -> SecretDetected:
    """The error for a finding in a file."""
    return _error(finding, path=path, hint=_HINT_FILE)


def found_in_file(data: bytes, path: str) -> list[Finding]:
    """Every secret in a file's name and bytes, allowed or not; what stands there as an escape counts, too."""
    text = _decoded(data)
    found = find(text) or find(path)
    if not found and "\\" in text and path.endswith(_DOCUMENT_SUFFIXES):
        return _found_in_values(data, path)
    return found


def _found_in_values(data: bytes, path: str) -> list[Finding]:
    mapping = _mapping(data, path)
    return found_in_value(mapping) if mapping else []


def found_in_value(value: Any) -> list[Finding]:
    """Every secret in the texts of a plain value, without its place."""
    texts = "\n".join(text for _, text in _leaves(value, ""))
    return [Finding(found.rule, found.what, 0, 0, 1) for found in find(texts)]


def _error(finding: Finding, *, hint: str, path: str | None = None, field: str | None = None) -> SecretDetected:
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
        comment = _COMMENT.search(_decoded(data))
        reason = comment[1].strip() if comment else reason_in(mapping)
    return "" if find(reason) else reason


def allowed(item: MemoryItem, reason: str = "") -> tuple[MemoryItem, str]:
    """The item, and the reason that lets a secret in it stay: its own, or the one given, which is then recorded in it.

    Returns:
        The item as it was, and "", where it holds nothing that needs a reason.

    Raises:
        SecretDetected: it holds a secret and there is no reason, or the reason holds one.
        ContentError: the reason is none, see ``check_reason``.
    """
    given = reason_in(item.metadata) or reason.strip()
    if given:
        check_reason(given)
    elif reason:
        check_reason(reason)
    for field, finding in _found_in_item(item):
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
    """Refuse a reason that is none: it goes into the commit's message, so it is one short line without a secret.

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
    told = f"{error.message} {error.hint or ''} {error.field or ''}"
    for finding in find(text):
        value = text[finding.start : finding.end]
        if any(value[at : at + _SHOWN_PART] in told for at in range(len(value) - _SHOWN_PART + 1)):
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
    """Every text of an item with the field it stands in; a value of a mapping after its key, which may be telling."""
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
    for one in item.conflicts:
        yield "conflicts", f"{one.field} {one.by}"
        yield from _leaves([one.kept, one.lost], "conflicts")


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
