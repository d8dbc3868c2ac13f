"""The names, types, defaults and bounds of all settings, as values.

A value is checked against its rule, whether it comes from a file, a variable or a caller.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import partial
from types import MappingProxyType

from memfs.config_names import SETTINGS_FILE, VARIABLES
from memfs.dataclass import NamedTuple, dataclass, field
from memfs.errors import SettingInvalid
from memfs.model.kinds import nearest
from memfs.startup import TYPE_CHECKING, Any, json, regex

if TYPE_CHECKING:
    from typing import ClassVar


class Spec(NamedTuple):
    """The rule of one setting: dotted key, default (whose type is the setting's), meaning, and allowed values.

    A ``personal`` one loosens what protects the reader, or reaches outside the workspace, unless it has its default: an
    argument or variable may set it, ``memfs.toml`` only in a workspace that the reader trusts (``memfs.trust``). Of a
    list with ``harmless`` names that is so for each other name in it.
    """

    key: str
    default: Any
    summary: str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    personal: bool = False
    harmless: tuple[str, ...] = ()

    @property
    def variable(self) -> str:
        """The environment variable that sets it, such as ``MEMFS_INDEX_ENGINE``."""
        return VARIABLES + self.key.replace(".", "_").upper()

    def foreign(self, names: Iterable[Any]) -> list[Any]:
        """Those of a list that are personal, because they are not harmless; none where all of them may be named."""
        return [name for name in names if name not in self.harmless] if self.harmless else []


_setting: Any = partial(Spec, "")
SPECS: dict[str, Spec] = {}
TABLES: dict[str, type[Any]] = {}


def _registered(table: str, rules: Mapping[str, Spec]) -> Mapping[str, Any]:
    """The defaults of a table, whose rules are known by their keys from here on."""
    SPECS.update({f"{table}.{name}": rule._replace(key=f"{table}.{name}") for name, rule in rules.items()})
    return MappingProxyType({name: rule.default for name, rule in rules.items()})


class SettingsTable:
    """The values of one table, each its default unless it is given; they never change.

    Attributes:
        defaults: by name.
    """

    defaults: ClassVar[Mapping[str, Any]]

    def __init_subclass__(cls, table: str) -> None:
        TABLES[table] = cls
        cls.defaults = _registered(table, {name: rule for name, rule in vars(cls).items() if isinstance(rule, Spec)})

    def __init__(self, **values: Any) -> None:
        if unknown := values.keys() - self.__annotations__.keys():
            raise TypeError(f"{type(self).__name__} has no {min(unknown)!r}")
        vars(self).update(self.defaults, **values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name!r} of a table of settings cannot be set")

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if type(other) is type(self) else NotImplemented

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


BUILT_IN_SOURCES: Mapping[str, str] = {
    "preferences": "automatic",
    "conventions": "automatic",
    "recent_session": "automatic",
    "feedback": "automatic",
    "episodic": "triggered",
    "semantic": "triggered",
}
"""The built-in sources of context and the delivery of each. A repository may name these without being trusted."""


class MemorySettings(SettingsTable, table="memory"):
    """``[memory]``: which sources give an agent its context, and their own tables ``[memory.<source>]``.

    ``sources`` holds the values of each: all of a built-in one's, and of one from others what was written for it.
    """

    automatic: tuple[str, ...] = _setting(
        ("preferences",), "Sources loaded at the start of every session.", harmless=tuple(BUILT_IN_SOURCES)
    )
    triggered: tuple[str, ...] = _setting(
        ("episodic", "semantic"), "Sources that speak up when the work needs them.", harmless=tuple(BUILT_IN_SOURCES)
    )
    on_demand: bool = _setting(True, "Whether agents may ask with recall.")
    on_demand_sources: tuple[str, ...] = _setting(
        (), "Further sources that answer when agents ask.", harmless=tuple(BUILT_IN_SOURCES)
    )
    automatic_tokens: int = _setting(
        1000, "Maximum tokens given at the start of a session; 0: no limit.", low=0, high=10**6
    )
    triggered_tokens: int = _setting(400, "Maximum tokens given before a step; 0: no limit.", low=0, high=10**6)
    recall_tokens: int = _setting(2000, "Maximum tokens given when an agent asks; 0: no limit.", low=0, high=10**6)
    source_seconds: float = _setting(2.0, "How long a third-party source may take.", low=0.05, high=60)
    decay: bool = _setting(True, "Whether what is old and unused sinks when agents ask.")
    context: str = _setting("", "Name of the memory context in use; empty: `configuration/memory_context.yaml`.")
    sources: Mapping[str, Mapping[str, Any]]


SOURCE_TABLES: Mapping[str, Mapping[str, Spec]] = {
    "preferences": {  # what a person wishes
        "max_items": _setting(10, "How many preferences are given.", low=0, high=1000)
    },
    "conventions": {  # what the team agreed on
        "max_items": _setting(20, "How many conventions are given.", low=0, high=1000)
    },
    "recent_session": {  # what the session before did
        "max_items": _setting(5, "How many lines of the session before are given.", low=0, high=100),
        "max_age_days": _setting(14.0, "How old that session may be, in days.", low=0, high=3660),
    },
    "feedback": {  # what the last meta-review says to the agent that is named
        "enabled": _setting(True, "Whether an agent that is named is given its feedback."),
        "max_items": _setting(10, "How many points of feedback are given.", low=0, high=100),
    },
    "episodic": {  # warnings from past failures
        "similarity_threshold": _setting(0.7, "How alike a situation must be for a warning.", low=0, high=1),
        "max_warnings": _setting(3, "How many warnings are given.", low=0, high=100),
    },
    "semantic": {  # learned rules
        "min_confidence": _setting(0.7, "How sure a rule must be.", low=0, high=1)
    },
}
"""The tables ``[memory.<source>]`` of the built-in sources."""
_DEFAULT_SOURCES = MappingProxyType(
    {name: _registered(f"memory.{name}", rules) for name, rules in SOURCE_TABLES.items()}
)


class HooksSettings(SettingsTable, table="hooks"):
    """``[hooks]``: what hooks give to an agent's program."""

    start_tokens: int = _setting(500, "Maximum tokens given at the start of a session; 0: nothing.", low=0, high=4000)
    prompt_tokens: int = _setting(500, "Maximum tokens given with a prompt; 0: nothing.", low=0, high=4000)
    prompt_items: int = _setting(5, "How many memories are given with a prompt.", low=0, high=50)


class WorkingSettings(SettingsTable, table="working"):
    """``[working]``: what a session is busy with."""

    in_git: bool = _setting(False, "Whether working memory is committed like other memories.")


class IndexSettings(SettingsTable, table="index"):
    """``[index]``: the search engine."""

    engine: str = _setting("whoosh", "Search engine.", choices=("memory", "whoosh", "sqlite"))
    texts: bool = _setting(True, "Whether the user's cache holds the texts of memories, so that none is parsed twice.")


class HistorySettings(SettingsTable, table="history"):
    """``[history]``: when changes become commits."""

    commit: str = _setting(
        "manual", "When waiting changes become a commit.", choices=("interval", "session", "each", "batch", "manual")
    )
    interval_seconds: float = _setting(1.0, "Length of the commit window under 'interval'.", low=0.01, high=86_400)
    adopt: str = _setting("leave", "Whether hand edits are committed by themselves.", choices=("auto", "leave"))
    adopt_after_seconds: float = _setting(30.0, "How long a hand-edited file must rest first.", low=0, high=86_400)
    allow_detached: bool = _setting(False, "Whether to commit on a detached HEAD.")
    sign: str = _setting(
        "off",
        "Whether commits are signed: not, where there is a key that works, or else they wait.",
        choices=("off", "try", "require"),
    )


class RecallSettings(SettingsTable, table="recall"):
    """``[recall]``: what a question brings back."""

    limit: int = _setting(10, "How many hits a recall returns by default.", low=1, high=10_000)
    preset: str = _setting(
        "default", "Weights of the ranking.", choices=("default", "time_weighted", "learning", "fading")
    )
    learn: bool = _setting(
        False, "Whether ranking learns from which hits are used; it is then noted what made their scores."
    )
    deduplicate: bool = _setting(True, "Whether the command line and agents' doors leave out duplicates of a hit.")
    max_tokens: int = _setting(0, "Maximum tokens in an answer by default; 0: no limit.", low=0, high=10**7)
    state_seconds: float = _setting(
        0.5, "How long an answer about agents' state takes by default; 0: no limit.", low=0, high=86_400
    )


class SemanticSearchSettings(SettingsTable, table="semantic"):
    """``[semantic]``: search by meaning."""

    model: str = _setting(
        "",
        "Model that searches by meaning: `wordllama`, `minilm`, `hashing`, one that `endpoint` runs, or `off`; empty: "
        "what the memory context says, else words only.",
    )
    endpoint: str = _setting(
        "", "Base address of an OpenAI-compatible service that runs the model; empty: this machine.", personal=True
    )


class ServedSettings(SettingsTable, table="served"):
    """``[served]``: the record of which items were handed out, when and to whom; it stays on this machine."""

    log: bool = _setting(True, "Whether it is recorded which items are served.")
    questions: bool = _setting(False, "Whether the questions are noted, too.", personal=True)
    days: int = _setting(90, "How many days of it are kept.", low=1, high=3660)
    megabytes: int = _setting(16, "How many megabytes of it are kept at most.", low=2, high=10_000)


STORAGE_REVIEWERS = ("analyzer", "patterns", "knowledge-archaeologist")
"""The built-in reviewers of drafts."""


class ReviewSettings(SettingsTable, table="review"):
    """``[review]``: who judges a draft before it is stored."""

    threshold: float = _setting(6.0, "Mean score, 0 to 10, from which a draft is stored.", low=0, high=10)
    reviewers: tuple[str, ...] = _setting(STORAGE_REVIEWERS, "Who judges a draft, by name.", personal=True)
    endpoint: str = _setting("", "Base address of an OpenAI-compatible service whose model judges too.", personal=True)
    model: str = _setting("", "Name of that service's model.")
    seconds: float = _setting(5.0, "How long reviewers may take over a draft.", low=0.1, high=600)
    relevance_seconds: float = _setting(2.0, "How long reviewers may take over an answer.", low=0.1, high=600)

    @property
    def judges_answers(self) -> bool:
        """Whether a model, or reviewers of one's own, may judge answers."""
        return bool(self.endpoint or {*self.reviewers}.difference(STORAGE_REVIEWERS))


class LearningSettings(SettingsTable, table="learning"):
    """``[learning]``: what becomes of what memfs works out by itself."""

    patterns: str = _setting(
        "suggest",
        "What memories have in common, and what tasks and sessions teach: not looked for, suggested in "
        "'memfs inbox', or written.",
        choices=("off", "suggest", "write"),
    )
    rules: str = _setting(
        "suggest",
        "What failures teach, and what a person is heard to prefer: not looked for, suggested, or written.",
        choices=("off", "suggest", "write"),
    )


class SecuritySettings(SettingsTable, table="security"):
    """``[security]``: what is let in."""

    allow_invisible: bool = _setting(
        False, "Whether text may hold characters that hide instructions from a reader.", personal=True
    )


class WatchSettings(SettingsTable, table="watch"):
    """``[watch]``: how a long-lived process notices changed files."""

    enabled: bool = _setting(True, "Whether long-lived processes watch the files.")
    debounce_ms: int = _setting(100, "How long events must pause before they are acted on.", low=1, high=60_000)
    scan_seconds: float = _setting(60.0, "How often all files are compared all the same.", low=1, high=86_400)


class ResidentSettings(SettingsTable, table="resident"):
    """``[resident]``: the process that answers commands from a workspace that it holds open."""

    use: bool = _setting(True, "Whether there may be a resident process.")
    auto: bool = _setting(False, "Whether a command starts one where none is running.", personal=True)
    idle_minutes: float = _setting(15.0, "After how many minutes without a command it leaves.", low=0.01, high=10_000)


class BackupSettings(SettingsTable, table="backup"):
    """``[backup]``: when backups are made by themselves, and where they go."""

    interval_hours: float = _setting(
        0.0, "Hours between backups made by themselves; 0 makes none.", low=0, high=8784, personal=True
    )
    copies: int = _setting(7, "How many backups are kept in each place.", low=1, high=1000, personal=True)
    targets: tuple[str, ...] = _setting(
        (), "Folders that backups go to; without one, a folder of the user's own.", personal=True
    )


class StorageSettings(SettingsTable, table="storage"):
    """``[storage]``: where writes go."""

    secondary: str = _setting(
        "", "Folder on another disk for writes while the workspace's own takes none.", personal=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of one workspace, by table; ``mounts`` are other workspaces' folders by the name given to them.

    ``origins`` says for each dotted key where its value came from: ``argument``, the ``MEMFS_*`` variable's name,
    ``memfs.toml`` with the line, or ``default``, with a remark where ``memfs.toml`` sets it without being trusted to.
    It holds the key of every setting, and of each mount and each value of a source from others that counts.
    """

    memory: MemorySettings = field(default_factory=lambda: MemorySettings(sources=_DEFAULT_SOURCES))
    hooks: HooksSettings = field(default_factory=HooksSettings)
    working: WorkingSettings = field(default_factory=WorkingSettings)
    index: IndexSettings = field(default_factory=IndexSettings)
    history: HistorySettings = field(default_factory=HistorySettings)
    recall: RecallSettings = field(default_factory=RecallSettings)
    semantic: SemanticSearchSettings = field(default_factory=SemanticSearchSettings)
    served: ServedSettings = field(default_factory=ServedSettings)
    review: ReviewSettings = field(default_factory=ReviewSettings)
    learning: LearningSettings = field(default_factory=LearningSettings)
    security: SecuritySettings = field(default_factory=SecuritySettings)
    watch: WatchSettings = field(default_factory=WatchSettings)
    resident: ResidentSettings = field(default_factory=ResidentSettings)
    backup: BackupSettings = field(default_factory=BackupSettings)
    storage: StorageSettings = field(default_factory=StorageSettings)
    mounts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    origins: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def get(self, key: str) -> Any:
        """The value of a dotted key.

        Raises:
            SettingInvalid: no such key; the hint names the nearest one.
        """
        table, _, name = key.rpartition(".")
        group, _, source = table.partition(".")
        if table == MOUNTS and name in self.mounts:
            return self.mounts[name]
        if group == "memory" and name in (values := self.memory.sources.get(source, {})):
            return values[name]
        if key not in SPECS:
            raise _unknown(key, [*SPECS, *self.origins])
        return getattr(getattr(self, table), name)


MOUNTS = "mounts"
"""The table of other workspaces: whatever names, each with a folder."""
MOUNT_NAME = regex(r"[a-z0-9][a-z0-9_-]{0,39}")


def spec_of(key: str) -> Spec:
    """The rule of a dotted key.

    Raises:
        SettingInvalid: no such key; the hint names the nearest one.
    """
    table, _, name = key.partition(".")
    if table == MOUNTS and MOUNT_NAME.fullmatch(name):
        return Spec(key=key, default="", summary="Folder of another workspace, read and never written.", personal=True)
    if table == MOUNTS:
        hint = "name it with lower-case letters, digits, '-' and '_', at most 40"
        raise SettingInvalid(f"{name!r} cannot name a mount", field=key, hint=hint)
    if key not in SPECS:
        raise _unknown(key, SPECS)
    return SPECS[key]


def _unknown(key: str, known: Iterable[str]) -> SettingInvalid:
    hint = nearest(key, known) or "'memfs config --list' shows all; to change one: memfs config KEY VALUE"
    return SettingInvalid(f"unknown setting {key!r}", hint=hint)


_TRUE, _FALSE = frozenset({"1", "true", "yes", "on"}), frozenset({"0", "false", "no", "off"})


def from_text(written: str, spec: Spec, variable: str = "") -> Any:
    """A value that was written as text, as in a variable or on a command line, read by the setting's type.

    Raises:
        SettingInvalid: as ``checked``; ``field`` names the variable.
    """
    value: Any = written.strip()
    lowered = value.lower()
    if isinstance(spec.default, bool):
        value = True if lowered in _TRUE else False if lowered in _FALSE else value
    elif isinstance(spec.default, tuple):
        # as it is written in the file, too: ["a", "b"] is a, b
        listed = value[1:-1] if value.startswith("[") and value.endswith("]") else value
        value = [name for part in listed.split(",") if (name := part.strip().strip("\"'"))]
    elif isinstance(spec.default, (int, float)):
        for number in (int, float):
            try:
                value = number(lowered)
                break
            except ValueError:
                continue
    return checked(value, spec, variable=variable)


def checked(value: Any, spec: Spec, line: int | None = None, variable: str = "") -> Any:
    """A value as its setting has it: lists as tuples, numbers as its default's type.

    Args:
        line: its line in ``memfs.toml``.
        variable: the environment variable it comes from.

    Raises:
        SettingInvalid: it is of the wrong sort or out of bounds; the hint names what would be right.
    """
    if wanted := _expected(value, spec):
        shown = json.dumps(value, default=str, ensure_ascii=False)
        raise SettingInvalid(
            f"{shown[:80]} is not {wanted}",
            path=SETTINGS_FILE if line and not variable else None,
            line=line,
            field=variable or spec.key,
            hint=(nearest(str(value), spec.choices) if spec.choices else "") or f"the default is {toml(spec.default)}",
        )
    if isinstance(spec.default, tuple):
        return tuple(value)
    return float(value) if isinstance(spec.default, float) else value


def _expected(value: Any, spec: Spec) -> str:
    """What the value should have been, in words; "" when it is right."""
    default = spec.default
    if isinstance(default, bool):
        return "" if isinstance(value, bool) else "true or false"
    if isinstance(default, tuple):
        right = isinstance(value, (list, tuple)) and all(isinstance(part, str) and part for part in value)
        return "" if right else "a list of names"
    if isinstance(default, (int, float)):
        whole = isinstance(default, int)
        right = (
            isinstance(value, int if whole else (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        )
        low, high = spec.low or 0, spec.high or math.inf
        if right and low <= value <= high:
            return ""
        return f"a {'whole ' if whole else ''}number from {_plain(low)} to {_plain(high)}"
    if spec.choices:
        return "" if value in spec.choices else "one of " + ", ".join(spec.choices)
    return "" if isinstance(value, str) else "a text"


def _plain(bound: float) -> str:
    """A bound as a person writes it: all digits of a whole number, no exponent."""
    return f"{bound:.0f}" if float(bound).is_integer() else f"{bound:g}"


def toml(value: Any) -> str:
    """A setting's value as it is written in ``memfs.toml``."""
    if isinstance(value, tuple):
        return "[" + ", ".join(toml(part) for part in value) + "]"
    return json.dumps(value, ensure_ascii=False, default=str)
