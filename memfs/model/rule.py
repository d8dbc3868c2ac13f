"""Rule: advice learned from outcomes, with its evidence and its confidence, as a checked value; and the globs by which
a rule or a convention names the files it holds for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate
from functools import lru_cache

from memfs.dataclass import KW_ONLY, dataclass
from memfs.errors import SchemaInvalid
from memfs.model.item import texts_in, unfit
from memfs.startup import regex

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
                raise unfit(name, "text", value)
        for name in ("files", "learned_from"):
            object.__setattr__(self, name, texts_in(name, getattr(self, name)))
        for name in ("support", "against", "helped"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise unfit(name, "a whole number of at least 0", value)
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
        raise unfit(name, "a number from 0 to 1", value)


_LONGEST_GLOB = 300
_LONGEST_PATH = 4096
_FOLDERS = "**"
_SIGNS = regex(r"[*?]|\[[^\]/]*\]")

Part = str | re.Pattern[str]
"""What one name of a path must be; ``**`` for any number of folders."""


def fits(glob: str, path: str, *, anywhere: bool = False) -> bool:
    """Whether a glob means a file.

    ``*`` and ``?`` stay within one name, ``**`` stands for folders, ``[ab]`` is one of several characters, or what is
    written, since files are named so, too. A glob without ``/`` means a name in any folder; one that names a folder
    means all below it. An absolute path is meant by its end. What it takes grows with both lengths alone, whatever the
    glob.

    Args:
        anywhere: whether the glob may begin in any folder, and not at the top alone.
    """
    parts = _parts(glob)
    whole = plain(path)
    if not parts or len(whole) > _LONGEST_PATH:
        return False
    begins = anywhere or whole.startswith("/") or len(parts) == 1
    return _match((_FOLDERS, *parts) if begins else parts, whole.split("/"))


def is_wild(glob: str) -> bool:
    """Whether a glob has a wildcard; brackets are none, as files are named with them."""
    return "*" in glob or "?" in glob


def telling(glob: str) -> str:
    """The longest piece of a glob that is in every path it means."""
    return max(_SIGNS.split(plain(glob.strip())), key=len).strip("/")


def plain(path: str) -> str:
    """A path without the ``./`` before it."""
    while path.startswith("./"):
        path = path[2:]
    return path


@lru_cache(maxsize=2048)
def _parts(glob: str) -> tuple[Part, ...]:
    """What a glob asks of a path, name by name; () for one that means nothing."""
    written = plain(glob.strip()).strip("/")
    if not written or len(written) > _LONGEST_GLOB:
        return ()
    return tuple(_part(name) for name in written.split("/"))


def _part(name: str) -> Part:
    """Brackets are also taken as they are: files are named with them."""
    if name == _FOLDERS or not (is_wild(name) or "[" in name):
        return name
    return re.compile(f"{translate(name.replace('[^', '[!'))}|{re.escape(name)}", re.DOTALL)


def _match(parts: Sequence[Part], names: Sequence[str]) -> bool:
    """Whether the parts take a whole path, or the beginning of it that is a folder: how far they can take it."""
    reached = {0}
    for at, part in enumerate(parts):
        if part == _FOLDERS:
            reached = set(range(min(reached) + (at == len(parts) - 1), len(names) + 1))
        else:
            reached = {place + 1 for place in reached if place < len(names) and _takes(part, names[place])}
        if not reached:
            return False
    return any(reached)


def _takes(part: Part, name: str) -> bool:
    return part == name if isinstance(part, str) else part.fullmatch(name) is not None
