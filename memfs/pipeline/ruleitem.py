"""Rule item: how a rule looks as an item, and back (seed 004, P4).

Owns its fields, its stable id, and what may be written over: what a person stands behind or changed stays as it is.
Stores nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from memfs.model import Link, MemoryItem
from memfs.model.body import count_in, text_in, texts_in
from memfs.model.ids import slug
from memfs.model.item import BY_TRUST, VOUCHED
from memfs.model.rule import Rule
from memfs.model.triggerrow import RULE
from memfs.pipeline.rowmaking import confidence_of

SOURCE = "rules"
"""The door through which what failures teach comes, for commits' trailers."""
MADE_FROM = "made_from"
"""The key of ``metadata`` that says what a rule was made from; patterns are not learned from what has it."""
FAILURES = "failures"
WORDING = "wording"
RETIRED_ON = "retired"
TAUGHT = "taught"
"""The key of an episode's ``metadata`` that names the rule it taught."""
MOST_EVIDENCE = 100
LINKED = 3
_TITLE = 80
_FIGURES = ("confidence", "support", "against", "helped")
_OPTIONAL = frozenset({"files", "tool", "error", "learned_from"})
_FIELDS = ("pattern", "action", "confidence", "files", "tool", "error", "support", "against", "helped")


def item_of(rule: Rule) -> MemoryItem:
    """The item of a rule that is not stored yet."""
    return MemoryItem(
        rule.action,
        RULE,
        id=rule.id or stable_id(rule),
        title=_title(rule),
        trust=rule.trust,
        status=rule.status,
        pinned=rule.pinned,
        data=_data(rule, {}),
        links=_links(rule),
    )


def rule_of(item: MemoryItem) -> Rule | None:
    """The rule that an item is, None for one of another type; what it does not say is taken from its text."""
    if item.type != RULE:
        return None
    data = item.data
    files = texts_in(data.get("files"))
    action = text_in(data.get("action")) or item.content or item.title
    tool = text_in(data.get("tool"))
    pattern = text_in(data.get("pattern")) or ("" if files or tool.strip() else item.title or item.content)
    return Rule(
        pattern,
        action,
        confidence_of(item),
        files=files,
        tool=tool,
        error=text_in(data.get("error")),
        support=count_in(data.get("support")),
        against=count_in(data.get("against")),
        helped=count_in(data.get("helped")),
        learned_from=texts_in(data.get("learned_from")),
        id=item.id,
        trust=item.trust,
        status=item.status,
        pinned=item.pinned,
    )


def updated(item: MemoryItem, rule: Rule) -> MemoryItem:
    """An item with what a caller says of its rule; the item itself where a better trusted one stands there.

    Said again as its author said it, a rule keeps what was counted since, and its status. Said with another confidence,
    it is counted anew from there.
    """
    known = rule_of(item)
    if known is None or known == rule or _rank(rule.trust) < _rank(item.trust):
        return item
    data = _data(rule, {**item.data, "learned_from": known.learned_from})
    if rule.confidence in (known.confidence, stated_of(item)["confidence"]):
        counted = any(getattr(rule, name) for name in _FIGURES[1:]) and rule.confidence == known.confidence
        data |= {} if counted else {name: item.data[name] for name in _FIGURES if name in item.data}
    else:
        data.pop("stated", None)
    same_words = known.action == rule.action or item.content != known.action
    return item.replace(
        content=item.content if same_words else rule.action,
        trust=rule.trust,
        status=rule.status or item.status,
        pinned=rule.pinned or item.pinned,
        data=data,
    )


def stable_id(rule: Rule) -> str:
    """The id of a rule that has none: the same for the same advice in the same situation."""
    basis = "\0".join((rule.pattern, rule.tool, rule.action, *rule.files))
    return f"{slug(rule.action) or RULE}-{sha256(basis.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def known_action(item: MemoryItem) -> str:
    """What an item's ``data`` advises."""
    return text_in(item.data.get("action"))


# -- what analysis may change ---------------------------------------------------------------------------------------
def made_by_analysis(item: MemoryItem) -> bool:
    """Whether failures taught it."""
    return item.metadata.get(MADE_FROM) == FAILURES


def is_kept(item: MemoryItem) -> bool:
    """Whether it is a person's: neither its figures nor its words are changed, and it is never retired."""
    return item.pinned or item.trust in VOUCHED


def wording_of(item: MemoryItem) -> str:
    """Names the words of a rule, to see whether somebody changed them."""
    words = (
        item.title,
        item.content,
        known_action(item),
        text_in(item.data.get("pattern")),
        text_in(item.data.get("error")),
    )
    return sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def learned(rule: Rule, title: str) -> MemoryItem:
    """The item of a rule that failures taught."""
    item = item_of(rule).replace(title=title[:_TITLE])
    return worded(item.replace(metadata={MADE_FROM: FAILURES}))


def worded(item: MemoryItem) -> MemoryItem:
    """An item that knows its words as those of the analysis."""
    return item.replace(metadata={**item.metadata, WORDING: wording_of(item)})


def is_untouched(item: MemoryItem) -> bool:
    """Whether its words are still those that the analysis wrote."""
    return item.metadata.get(WORDING) == wording_of(item)


def with_figures(item: MemoryItem, figures: Mapping[str, float], evidence: tuple[str, ...]) -> MemoryItem:
    """An item with other figures, and further evidence where failures taught it.

    What an author had stated is kept beside; what it named as evidence stays as it is, for that was known when it was
    stated, and is not counted again.
    """
    data = dict(item.data)
    if not made_by_analysis(item) and "stated" not in data:
        data["stated"] = stated_of(item)
    data |= figures
    if evidence and made_by_analysis(item):
        known = texts_in(data.get("learned_from"))
        data["learned_from"] = list(dict.fromkeys((*known, *evidence)))[-MOST_EVIDENCE:]
    return item.replace(data=data)


def stated_of(item: MemoryItem) -> dict[str, Any]:
    """What its author said of a rule that no analysis made, before outcomes were counted."""
    stated = item.data.get("stated")
    if isinstance(stated, Mapping):
        return {"confidence": confidence_of(item), **stated}
    return {"confidence": confidence_of(item), **{name: count_in(item.data.get(name)) for name in _FIGURES[1:]}}


def _data(rule: Rule, known: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a rule's item: what is known, with what the rule says of it."""
    ids = tuple(dict.fromkeys((*known.get("learned_from", ()), *rule.learned_from)))[-MOST_EVIDENCE:]
    said: dict[str, Any] = {name: getattr(rule, name) for name in _FIELDS} | {"learned_from": ids}
    written = {name: list(value) if isinstance(value, tuple) else value for name, value in said.items()}
    kept = {name: value for name, value in known.items() if name not in written}
    return {name: value for name, value in written.items() if value or name not in _OPTIONAL} | kept


def _title(rule: Rule) -> str:
    words = " ".join((rule.pattern or ", ".join(rule.files) or rule.tool).split())
    return words if len(words) <= _TITLE else words[: _TITLE - 3].rstrip() + "..."


def _links(rule: Rule) -> tuple[Link, ...]:
    return tuple(Link(to=one, relation="learned_from") for one in rule.learned_from[-LINKED:] if one)


def _rank(trust: str) -> int:
    return BY_TRUST.index(trust) if trust in BY_TRUST else 0
