"""The built-in reviewers of drafts and answers, and the register of reviewers by name.

All built-in reviewers work offline, by the rules in ``docs/review.md`` over what a text shows: that it is a decision, a
cause, an instruction or a passing remark. Where a language has no cues, names, figures and length still count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache

from memfs.dataclass import NamedTuple, dataclass
from memfs.errors import SettingInvalid
from memfs.model import MemoryItem
from memfs.model.item import whole
from memfs.model.kinds import nearest
from memfs.recall.cues import all_cues
from memfs.search.analyzer import STOP_WORDS, tokens
from memfs.search.terms import COMMON_WORDS, held_terms, shares_held, weights
from memfs.settings import STORAGE_REVIEWERS as STORAGE_REVIEWERS
from memfs.settings import ReviewSettings
from memfs.startup import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from memfs.recall.llm_reviewer import LlmReviewer


STORAGE_SCALE = (0.0, 10.0)
RELEVANCE_SCALE = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Score:
    """A reviewer's judgement: a number on the scale that was asked for, and one sentence of why."""

    value: float
    reason: str = ""


@runtime_checkable
class Reviewer(Protocol):
    """Judges whether a draft is worth keeping.

    It may be asked from several threads at once. What it raises leaves it out of that judgement, and is reported.
    """

    name: str

    def score_storage(self, item: MemoryItem) -> Score:
        """How much the draft is worth keeping, 0 to 10."""


@runtime_checkable
class Extractor(Protocol):
    """A reviewer that also reads what drafts of a type say into fields of their own, before they are judged."""

    name: str

    def extract(self, item: MemoryItem) -> MemoryItem:
        """The draft with what its text says in title, tags, metadata and so on; as it is where it is none of its."""


@runtime_checkable
class RelevanceReviewer(Protocol):
    """A reviewer that also judges what an item is worth to a question."""

    name: str

    def score_relevance(self, item: MemoryItem, query: str) -> Score:
        """How much the item has to do with the question, 0 to 1."""


@runtime_checkable
class BatchReviewer(Protocol):
    """A relevance reviewer that judges all items in one go, as a model does in one call."""

    name: str

    def score_relevance_all(self, items: Sequence[MemoryItem], query: str) -> Sequence[Score]:
        """One score an item, in their order, 0 to 1."""


AnyReviewer = Reviewer | RelevanceReviewer | BatchReviewer | Extractor


RELEVANCE_REVIEWERS = ("analyzer", "patterns")
ENTRY_POINTS = "memfs.reviewers"
BASE = 5.0
_SHORT_LIVED = frozenset({"working", "prospective", "context"})
_EMPTY_WORDS = STOP_WORDS | COMMON_WORDS
_LOOKED_AT = 5_000
"""Characters of a text that are looked at: a longer one has said by then what it is."""
_TABLE, _ORDER = "features", "task"

_NUMBERED = re.compile(r"(?m)^[ \t]*(?:\d+[.)]|[-*])\s+\S|(?<=[:;,.\s])\(?[1-9][.)]\s+\S|\s(?:->|→|=>)\s")
_NAME = re.compile(
    r"(?<![\w`'])(?:`[^`\n]+`|https?://\S+|[\w.-]{1,64}@[\w-]{1,64}\.[\w.]+|[\w.-]{0,64}(?:/[\w.-]+)+|[A-Za-z]\w*_\w+|"
    r"[A-Z][a-z]+(?:[A-Z][a-z]*)+|[a-z]+[A-Z]\w*|[A-Z]{2,}\w*|[A-Za-z]+\d\w*|\w+\.(?:py|js|ts|go|rs|md|ya?ml|toml|"
    r"json|sh|sql|html|css|java|txt|cfg|ini|lock)\b)"
)
_PROPER = re.compile(r"(?<=[a-z0-9,;:)] )[A-Z][a-z]+\b(?:[ -][A-Z][a-z]+\b)*")
_FIGURE = re.compile(r"(?<![\w.])[$€£v#]?\d[\d,.:/]*(?:\s?(?:%|ms|s|min|h|days?|weeks?|months?|years?|[KMGT]i?B))?\b")
_SENTENCE = re.compile(r"(?<![.!?\n])[.!?\n]+(?:\s|$)")


# -- what a text shows -----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Traits:
    """What one text shows.

    Attributes:
        words: how many significant words it has: none that people say about anything.
        variety: distinct ones of these words by all of them, 1 for none.
        letters: letters and blanks by characters.
        names: distinct names, identifiers, paths and links.
        figures: distinct numbers, dates and versions.
        cues: how often each cue occurs; a cue that does not is absent.
        asks: whether nothing but a question is put.
        orders: whether it begins as an order does.
        steps: marks of a list of steps.
    """

    words: int
    variety: float
    letters: float
    names: int
    figures: int
    cues: Mapping[str, int]
    asks: bool
    orders: bool
    steps: int

    def has(self, *names: str) -> bool:
        """Whether any of these cues occurs."""
        return any(name in self.cues for name in names)


@cache
def _patterns() -> dict[str, list[re.Pattern[str]]]:
    """The expressions of each cue, one a language."""
    found: dict[str, list[re.Pattern[str]]] = {}
    for language in all_cues(_TABLE):
        for name in language.names(_TABLE):
            if name != _ORDER:
                found.setdefault(name, []).append(language.pattern(f"{_TABLE}.{name}", r"(?<!\w){}(?!\w)"))
    return found


def traits(text: str) -> Traits:
    """What a text shows; of a long one, its first 5,000 characters."""
    return _traits(text[:_LOOKED_AT].strip())


@lru_cache(maxsize=64)
def _traits(text: str) -> Traits:
    words = [word.casefold() for word, stems in tokens(text) if stems and word.casefold() not in _EMPTY_WORDS]
    counted = {name: sum(len(cue.findall(text)) for cue in patterns) for name, patterns in _patterns().items()}
    sentences = [sentence for sentence in _SENTENCE.split(text) if sentence.strip()]
    return Traits(
        words=len(words),
        variety=len(set(words)) / len(words) if words else 1.0,
        letters=sum(character.isalnum() or character.isspace() for character in text) / max(len(text), 1),
        names=len({*_NAME.findall(text), *_PROPER.findall(text)}),
        figures=len(set(_FIGURE.findall(text))),
        cues={name: number for name, number in counted.items() if number},
        asks=text.endswith("?") and len(sentences) <= 1,
        orders=any(one.pattern(f"{_TABLE}.{_ORDER}").match(text) for one in all_cues(_TABLE)),
        steps=len(_NUMBERED.findall(text)),
    )


# -- the rules -------------------------------------------------------------------------------------------------------
class ScoreRule(NamedTuple):
    """One reason to score higher or lower: the points, what they are given for, and how often that is so."""

    points: float
    what: str
    times: Callable[[Traits], float]


def _cue(*names: str) -> Callable[[Traits], float]:
    return lambda seen: float(seen.has(*names))


def _up_to(most: int, count: Callable[[Traits], int]) -> Callable[[Traits], float]:
    return lambda seen: float(min(most, count(seen)))


def _passes_by(seen: Traits) -> float:
    """A remark on the moment is one only where little that lasts is said beside it."""
    count = seen.cues.get("passing", 0)
    return float(count > 0 and seen.words < 5 * count and not seen.has("decision", "cause", "plan"))


def _vague(seen: Traits) -> float:
    count = seen.cues.get("vague", 0)
    return float(count > 0 and count * 3 > seen.words)


def _asks(seen: Traits) -> float:
    """A question that itself says something is half as bad."""
    return float(seen.asks) * (0.5 if seen.words > 3 else 1.0)


def _is_fact(seen: Traits) -> float:
    return float(seen.has("state") and _has_subject(seen))


def _has_subject(seen: Traits) -> float:
    return float(seen.words >= 3 and not seen.asks and not _passes_by(seen) and not _vague(seen))


ANALYZER_RULES = (
    ScoreRule(-2.0, "hardly a word that says anything", lambda seen: float(seen.words < 2 and not seen.orders)),
    ScoreRule(0.5, "a few meaningful words", lambda seen: float(seen.words == 2)),
    ScoreRule(1.0, "enough meaningful words to stand alone", lambda seen: float(3 <= seen.words <= 5)),
    ScoreRule(1.5, "many meaningful words", lambda seen: float(seen.words > 5)),
    ScoreRule(0.5, "a name or figure", _up_to(3, lambda seen: seen.names + seen.figures)),
    ScoreRule(0.5, "a clear order or rule", lambda seen: float(seen.orders or seen.has("rule"))),
    ScoreRule(-1.0, "nothing but a question", _asks),
    ScoreRule(-2.0, "a remark on the moment", _passes_by),
    ScoreRule(-1.5, "vague words", _vague),
    ScoreRule(-3.0, "the same words over and over", lambda seen: float(seen.words >= 6 and seen.variety < 0.3)),
    ScoreRule(-3.0, "hardly any letters", lambda seen: float(seen.letters < 0.5)),
)
PATTERNS_RULES = (
    ScoreRule(1.5, "a rule or an instruction", lambda seen: float(seen.orders or seen.has("rule"))),
    ScoreRule(1.5, "steps that can be followed again", lambda seen: float(seen.steps > 1 or seen.has("steps"))),
    ScoreRule(1.0, "a choice that holds for later cases", _cue("decision")),
    ScoreRule(1.0, "an outcome to learn from", _cue("outcome")),
    ScoreRule(1.0, "a habit or preference", _cue("preference")),
    ScoreRule(1.0, "something to be done", _cue("plan")),
    ScoreRule(0.5, "a cause and its effect", _cue("cause")),
    ScoreRule(1.0, "a lasting fact", _is_fact),
    ScoreRule(0.5, "somebody's circumstances", _cue("person")),
    ScoreRule(1.0, "a subject of its own", _has_subject),
    ScoreRule(0.5, "a name or figure to recognise it by", lambda seen: float(seen.names + seen.figures > 0)),
    ScoreRule(-1.0, "nothing but a question", _asks),
    ScoreRule(-2.0, "a remark on the moment", _passes_by),
    ScoreRule(-1.0, "vague words", _vague),
)
ARCHAEOLOGIST_RULES = (
    ScoreRule(2.0, "a decision", _cue("decision")),
    ScoreRule(1.5, "what was done, and how it ended", _cue("outcome")),
    ScoreRule(1.5, "a cause", _cue("cause")),
    ScoreRule(1.0, "a rule or an instruction", lambda seen: float(seen.orders or seen.has("rule"))),
    ScoreRule(1.0, "a person's ways or circumstances", _cue("preference", "person")),
    ScoreRule(1.0, "something promised or due", _cue("plan")),
    ScoreRule(1.0, "a lasting fact", _is_fact),
    ScoreRule(1.0, "a subject of its own", _has_subject),
    ScoreRule(0.5, "a name, figure or source", _up_to(3, lambda seen: seen.names + seen.figures)),
    ScoreRule(-1.5, "nothing but a question", _asks),
    ScoreRule(-2.0, "a remark on the moment", _passes_by),
    ScoreRule(-1.5, "vague words", _vague),
)
SHORT_LIVED = ScoreRule(1.0, "short-lived, so the bar is lower", lambda _: 1.0)


def _judged(item: MemoryItem, rules: Iterable[ScoreRule]) -> Score:
    seen = traits(whole(item))
    applying = (*rules, SHORT_LIVED) if item.type in _SHORT_LIVED else rules
    applied = [(rule, times) for rule in applying if (times := rule.times(seen))]
    points = BASE + sum(rule.points * times for rule, times in applied)
    reasons = "; ".join(f"{rule.what} ({rule.points * times:+g})" for rule, times in applied)
    return Score(min(10.0, max(0.0, points)), reasons or "nothing in particular")


class Analyzer:
    """Judges how much a text says, and of an answer how much of the question it covers."""

    name = "analyzer"

    def score_storage(self, item: MemoryItem) -> Score:
        """5, and what ``ANALYZER_RULES`` add and take."""
        return _judged(item, ANALYZER_RULES)

    def score_relevance(self, item: MemoryItem, query: str) -> Score:
        """The share of the question's words that the item holds, significant words counting double."""
        share, _ = shares_held(query, held_terms(query, item))
        return Score(share, f"{share:.0%} of what was asked" if weights(query) else "nothing was asked")


class PatternsReviewer:
    """Judges how often a text can be of use again, and of an answer whether the question is its subject."""

    name = "patterns"

    def score_storage(self, item: MemoryItem) -> Score:
        """5, and what ``PATTERNS_RULES`` add and take."""
        return _judged(item, PATTERNS_RULES)

    def score_relevance(self, item: MemoryItem, query: str) -> Score:
        """The share of the question's pairs of neighbouring words that the item holds both words of."""
        _, share = shares_held(query, held_terms(query, item))
        return Score(share, f"{share:.0%} of its pairs of words" if weights(query) else "nothing was asked")


class KnowledgeArchaeologist:
    """Judges whether a text preserves what would otherwise be lost: decisions, causes, outcomes, sources."""

    name = "knowledge-archaeologist"

    def score_storage(self, item: MemoryItem) -> Score:
        """5, and what ``ARCHAEOLOGIST_RULES`` add and take."""
        return _judged(item, ARCHAEOLOGIST_RULES)


# -- from settings ------------------------------------------------------------------------------------------------
def reviewers_of(settings: ReviewSettings) -> list[AnyReviewer]:
    """Who reads and judges drafts: the reviewers that settings name, and the model where an endpoint is set.

    Raises:
        SettingInvalid: as ``reviewers_named``, the endpoint cannot be asked, or there are no reviewers.
    """
    found: list[AnyReviewer] = [*reviewers_named(settings.reviewers), *model_of(settings)]
    if not any(isinstance(one, Reviewer) for one in found):
        hint = "name at least one reviewer, such as 'analyzer'"
        raise SettingInvalid("nobody reviews", field="review.reviewers", hint=hint)
    return found


def model_of(settings: ReviewSettings) -> list[LlmReviewer]:
    """The reviewer that asks a language model, where an endpoint is set; it judges drafts and answers.

    Raises:
        SettingInvalid: the endpoint cannot be asked.
    """
    if not settings.endpoint:
        return []
    from memfs.config_names import REVIEW_KEY
    from memfs.endpoint import Endpoint, key_of  # a workspace without a model is spared them
    from memfs.recall.llm_reviewer import LlmReviewer

    client = Endpoint(settings.endpoint, key_of(REVIEW_KEY), settings.seconds)
    seconds, relevance_seconds = settings.seconds, settings.relevance_seconds
    return [LlmReviewer(client, settings.model, seconds=seconds, relevance_seconds=relevance_seconds)]


# -- finding one by name ------------------------------------------------------------------------------------------
_BUILT_IN: Mapping[str, Callable[[], AnyReviewer]] = {
    maker.name: maker for maker in (Analyzer, PatternsReviewer, KnowledgeArchaeologist)
}
_registered: dict[str, Callable[[], AnyReviewer]] = {}


def register_reviewer(name: str, maker: Callable[[], AnyReviewer]) -> None:
    """Make a reviewer known by name in this process, for ``review.reviewers`` and ``reviewers_named``.

    Args:
        name: what settings call it; its ``name`` attribute is what results call it.
        maker: gives the reviewer, such as its class.

    Raises:
        SettingInvalid: a built-in reviewer has the name, it is no name, or ``maker`` cannot be called.
    """
    given: object = maker
    if name in _BUILT_IN or not name or name != name.strip() or "," in name or not callable(given):
        why = "makes no reviewer" if not callable(given) else "cannot be the name of another reviewer"
        raise SettingInvalid(f"{name!r} {why}", field="review.reviewers", hint="give a new name, and a class")
    _registered[name] = maker


def reviewers_named(names: Iterable[str]) -> list[AnyReviewer]:
    """The reviewers of these names, in order, each once.

    A name is that of a built-in or registered reviewer, of an entry point in the group ``memfs.reviewers`` of an
    installed package, or ``package.module:attribute``.

    Raises:
        SettingInvalid: there is no reviewer of a name (the hint names the nearest), or what it names is none.
    """
    named: list[AnyReviewer] = []
    for name in dict.fromkeys(names):
        maker = _BUILT_IN.get(name) or _registered.get(name) or _imported(name)
        found = maker() if callable(maker) else None
        if not isinstance(found, AnyReviewer) or not isinstance(found.name, str) or not found.name:
            hint = "it needs a name and a method such as score_storage(item)"
            raise SettingInvalid(f"what {name!r} names is not a reviewer", field="review.reviewers", hint=hint)
        named.append(found)
    return named


def _imported(name: str) -> Any:
    """What an installed package offers under a name, or ``module:attribute`` means: the maker of a reviewer, if it is
    one.
    """
    import importlib  # a workspace without reviewers of its own is spared these
    from importlib.metadata import EntryPoint, entry_points

    offered = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    point = offered.get(name) or (EntryPoint(name, name, ENTRY_POINTS) if ":" in name else None)
    if point is None:
        known = [*_BUILT_IN, *_registered, *offered]
        hint = nearest(name, known) or f"the reviewers are {', '.join(known)}; your own is named module:Class"
        raise SettingInvalid(f"there is no reviewer {name!r}", field="review.reviewers", hint=hint)
    module, _, path = point.value.partition(":")
    try:
        found = importlib.import_module(module)
        for attribute in path.split("."):
            found = getattr(found, attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingInvalid(
            f"the reviewer {name!r} cannot be imported: {error}",
            field="review.reviewers",
            hint="install its package, or put its folder on PYTHONPATH",
        ) from error
    return found
