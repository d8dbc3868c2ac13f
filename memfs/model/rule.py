"""Rule: advice learned from outcomes, with its evidence and its confidence, as a checked value."""

from __future__ import annotations

from collections.abc import Iterable

from memfs.dataclass import KW_ONLY, dataclass
from memfs.errors import SchemaInvalid

RETIRED = "retired"
"""The status of a rule that stopped holding: it is kept, and said to nobody."""
ENDED = frozenset({RETIRED, "superseded", "rejected", "archived"})
"""The statuses in which a rule is said to nobody, and an episode brings nothing to mind."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Advice for a situation.

    Attributes:
        pattern: words of a situation in which it applies; may be empty where ``files`` or ``tool`` say so.
        action: what to do then, in one sentence.
        confidence: how sure it is, 0 to 1.
        files: the files it is about, as globs: ``db/migrations/*.sql``; none for any.
        tool: what is about to be used, "" for any.
        error: what went wrong where it was not heeded.
        support, against: how many outcomes speak for it, and against it.
        helped: how many went well after an agent had been warned with it.
        learned_from: ids of the episodes it was learned from.
        id: of its item; "" until it is stored.
        trust: who stands behind it.
        status: "" while it holds, ``retired`` when it stopped holding.
        pinned: whether it is kept as it is, whatever the outcomes say.
    """

    pattern: str
    action: str
    confidence: float = 0.7
    _: KW_ONLY
    files: tuple[str, ...] = ()
    tool: str = ""
    error: str = ""
    support: int = 0
    against: int = 0
    helped: int = 0
    learned_from: tuple[str, ...] = ()
    id: str = ""
    trust: str = "agent"
    status: str = ""
    pinned: bool = False

    def __post_init__(self) -> None:
        for name in ("pattern", "action", "tool", "error", "id", "trust", "status"):
            value = getattr(self, name)
            if not isinstance(value, str):
                raise _unfit(name, "text", value)
        for name in ("files", "learned_from"):
            object.__setattr__(self, name, _texts(name, getattr(self, name)))
        for name in ("support", "against", "helped"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise _unfit(name, "a whole number of at least 0", value)
        _check_share("confidence", self.confidence)
        if not self.action.strip():
            raise SchemaInvalid("a rule needs an action", field="action", hint="say what to do, in one sentence")
        if not self.pattern.strip() and not self.files and not self.tool.strip():
            hint = "name words of the situation, files, or a tool"
            raise SchemaInvalid("a rule needs a situation in which it applies", field="pattern", hint=hint)

    @property
    def holds(self) -> bool:
        """Whether it may be said to an agent."""
        return self.status not in ENDED

    def __str__(self) -> str:
        """The seed's bullet without its dash: the action, and how sure it is."""
        return f"{self.action} (confidence: {self.confidence:.0%})"


def _check_share(name: str, value: object) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= 1:
        raise _unfit(name, "a number from 0 to 1", value)


def _texts(name: str, values: Iterable[str]) -> tuple[str, ...]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise _unfit(name, "a list of texts", values)
    found = tuple(values)
    for number, value in enumerate(found):
        if not isinstance(value, str):
            raise _unfit(f"{name}.{number}", "text", value)
    return tuple(dict.fromkeys(found))


def _unfit(name: str, wanted: str, value: object) -> SchemaInvalid:
    return SchemaInvalid(f"expected {wanted}, got {ascii(value)[:60]}", field=name)
