"""Extract what a session's events say as items: prompts, notes, decisions, knowledge, tasks, intentions, episodes.

A message is taken apart into sentences, without code, quoted lines, tables, headings and marks of Markdown. What is
worth keeping is judged by the cues of known languages. Ids follow from what was said, so that an event that is read
twice makes nothing twice; an event that two hooks report, and a task that two events report, count once. The session's
notes are updated with what later events depend on.

A tool is described the same way before it ran and after, so that a warning finds its outcome; ``same_thing`` is equal
for two calls that try the same thing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from memfs.dataclass import dataclass, field, replace
from memfs.format.text import shown
from memfs.intake.episode_item import clean_text, shortened
from memfs.learning.preferences import corrections, is_correction, passed_over
from memfs.model import MemoryItem, Origin
from memfs.model.episode import Action, Episode, Outcome, StateSnapshot
from memfs.model.ids import slug
from memfs.model.item import Trust
from memfs.model.kinds import HIGH, LOW, MEDIUM
from memfs.model.time import time_in
from memfs.recall.cues import TrivialFilter, all_cues, ends
from memfs.recall.similarity import normalised
from memfs.search.analyzer import terms
from memfs.sessions import spool
from memfs.sessions.spool import PendingEvent, SessionEvent, SessionNotes, by_person, digest, own_words
from memfs.startup import Any, json, regex

_COMPLETED, _WORKED_ON = "completed", "in_progress"
_LONGEST_TASK = 500
_MOST_TODOS = 200
_TASKS = "tasks"


@dataclass(frozen=True, slots=True)
class Task:
    """A task that became completed.

    Attributes:
        text: what was to be done.
        sort: the sort of work, such as ``bugfix``.
        minutes: how long it was worked on; None where it is unknown when that began.
        steps: what was done meanwhile, in words.
        more: what else was reported of it.
    """

    text: str
    sort: str
    minutes: float | None = None
    steps: tuple[str, ...] = ()
    more: str = ""


def completed(event: SessionEvent, notes: SessionNotes) -> list[Task]:
    """The tasks that became completed by an event; the notes learn of the stage of each."""
    if event.name == spool.TASK_DONE:
        return _task_done(event, notes)
    if event.name != spool.TOOL_DONE:
        return []
    if event.tool == "TodoWrite":
        return list(_todos(event, notes))
    if event.tool == "TaskCreate":
        _created(event, notes)
    return _updated(event, notes) if event.tool == "TaskUpdate" else []


def _todos(event: SessionEvent, notes: SessionNotes) -> Iterator[Task]:
    """TodoWrite sends the whole list each time: what is completed there and was not before became so."""
    earlier = dict(_stages(event.mapping("tool_response").get("oldTodos")))
    for text, stage in _stages(event.mapping("tool_input").get("todos")):
        key = digest(event.text("agent_id"), normalised(text))
        before, since = [*notes.todos.get(key, [earlier.get(text, "")]), "", ""][:2]
        if stage == _WORKED_ON and before != _WORKED_ON:
            since = event.moment
        notes.todos.pop(key, None)
        notes.todos[key] = [stage, since]
        if stage == _COMPLETED and before != _COMPLETED:
            yield from _done(text, since, event, notes)


def _stages(listed: Any) -> Iterator[tuple[str, str]]:
    """The todos of a list, each with its stage."""
    for todo in listed[:_MOST_TODOS] if isinstance(listed, list) else ():
        if not isinstance(todo, Mapping):
            continue
        text, stage = _text(todo.get("content") or todo.get("subject")), todo.get("status")
        if text and isinstance(stage, str):
            yield text, stage


def _created(event: SessionEvent, notes: SessionNotes) -> None:
    given, answer = event.mapping("tool_input"), event.mapping("tool_response")
    task = answer.get("task")
    known = task if isinstance(task, Mapping) else answer
    key = _id(known.get("id") or known.get("taskId"))
    if key and (text := _text(given.get("subject") or given.get("description"))):
        notes.tasks[key] = [_kept(text), ""]


def _updated(event: SessionEvent, notes: SessionNotes) -> list[Task]:
    given = event.mapping("tool_input")
    key = _id(given.get("taskId") or given.get("task_id"))
    if not key or event.mapping("tool_response").get("success") is False:  # refused, as by somebody's own hook
        return []
    text, since = [*notes.tasks.get(key, []), "", ""][:2]
    text = _text(given.get("subject")) or text
    if given.get("status") == _WORKED_ON:
        since = event.moment
    notes.tasks[key] = [_kept(text), since]
    return _done(text, since, event, notes, key) if given.get("status") == _COMPLETED and text else []


def _kept(text: str) -> str:
    """What is noted of a task until it is done: no secret."""
    return _text(clean_text(text, _LONGEST_TASK))


def _task_done(event: SessionEvent, notes: SessionNotes) -> list[Task]:
    """The task with what the event says of it that is otherwise worked out: its sort, how long it took, its steps."""
    key, more = _id(event.fields.get("task_id")), event.text("task_description")
    known, since = [*notes.tasks.get(key, []), "", ""][:2]
    text = _text(event.text("task_subject")) or known or _text(more)
    minutes, listed = event.fields.get("duration_minutes"), event.fields.get("steps")
    counted = isinstance(minutes, int | float) and not isinstance(minutes, bool) and minutes >= 0
    steps = tuple(step for one in listed[:_MOST_TODOS] if (step := _text(one))) if isinstance(listed, list) else ()
    return [
        replace(
            task,
            sort=_text(event.fields.get("task_type"))[:50] or task.sort,
            minutes=float(minutes) if counted and minutes is not None else task.minutes,
            steps=steps or task.steps,
        )
        for task in (_done(text, since, event, notes, key, more) if text else ())
    ]


def _done(text: str, since: str, event: SessionEvent, notes: SessionNotes, key: str = "", more: str = "") -> list[Task]:
    """The task, unless another event reported it as done already."""
    names = [digest("text", normalised(text)), *([digest("id", key)] if key else [])]
    known = any(name in notes.done for name in names)
    for name in names:
        notes.done[name] = event.moment
    if known:
        return []
    steps, notes.steps = tuple(notes.steps), []
    begin, end = time_in(since), time_in(event.moment)
    minutes = round((end - begin).total_seconds() / 60, 1) if begin and end and begin <= end else None
    sorts = (
        (match.start(), name)
        for language in all_cues(_TASKS)
        for name in language.names(_TASKS)
        if (match := language.pattern(f"{_TASKS}.{name}", r"\b{}\b").search(text))
    )
    _, sort = min(sorts, default=(0, "task"))  # the first word that names a sort of work
    extra = _text(more) if normalised(more) != normalised(text) else ""
    return [Task(text, sort, minutes, steps, extra)]


def _text(value: Any) -> str:
    return " ".join(value.split())[:_LONGEST_TASK] if isinstance(value, str) else ""


def _id(value: Any) -> str:
    return str(value)[:100] if isinstance(value, str | int) and not isinstance(value, bool) else ""


_LOOKED_AT = 20_000
_CODE = regex(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.M | re.S)
_LEFT_OUT = regex(r"^[ \t]*(?:>|\||#{1,6} |<!--|[-=*_]{3,}[ \t]*$).*$", re.M)
_WRAPPED = regex(r"(?<![.!?:;\n])\n[ \t]*(?=[a-z])")
_MARK = regex(r"(?:[-*+\u2022\u2713\u2705]|\d{1,3}[.)]|\[[ xX]\])\s+")
_EMPHASIS = regex(r"(?<!\w)[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}(?!\w)")


def sentences(text: str) -> list[str]:
    """The sentences of a message in order, each once; of a long one, those of its first 20,000 characters."""
    plain = _WRAPPED.sub(" ", _LEFT_OUT.sub("", _CODE.sub("\n", text[:_LOOKED_AT])))
    found: dict[str, None] = {}
    for part in ends().split(plain):
        sentence = part.strip()
        while mark := _MARK.match(sentence):
            sentence = sentence[mark.end() :].strip()
        sentence = _EMPHASIS.sub("", sentence).strip()
        if sentence:
            found[" ".join(sentence.split())] = None
    return list(found)


QUOTED = 20
"""How many characters in a row are a quotation."""
_LONGEST_INTENTION = 1_000
_BRIEF = 5

_INTENTIONS = "intentions"
_HASH = regex(r"[#\uff03][ \t\u3000]+(?=[\w\"'`(@/\u00ab\u201c\u201e\u300c])(\S[^\r\n]*)")


def pieces(value: object) -> Iterator[str]:
    """All that a quotation of a text, or of the texts in a value, would have in common with it: ``QUOTED`` characters
    in a row, whatever the letter case and the blanks.
    """
    if isinstance(value, str):
        plain = " ".join(value.casefold().split())
        yield from (plain[at : at + QUOTED] for at in range(len(plain) - QUOTED + 1))
    elif isinstance(value, Mapping):
        yield from pieces([*value.keys(), *value.values()])
    elif isinstance(value, Iterable):
        for one in value:
            yield from pieces(one)


def note(text: str) -> str:
    """What a message asks to be kept as it is, in whatever language; "" where it asks for nothing of the sort.

    It does by ``remember:`` at its beginning, before as many lines as there are, or by ``#`` and a blank before the one
    line that it has. ``#123``, ``#hashtag``, ``#!/bin/sh``, ``## a heading`` and a document that begins with a heading
    are no notes.
    """
    message = text.strip()
    found = _HASH.fullmatch(message)
    if found is not None:
        return "" if TrivialFilter().is_trivial(found[1]) else found[1].strip()
    for language in all_cues("notes"):
        begun = language.pattern("notes.remember", r"{}[ \t]*[:\uff1a]\s*").match(message)
        if begun is not None:
            return message[begun.end() :].strip()
    return ""


def intention(text: str) -> str:
    """The sentences of a message about work to be done later, each with a short one behind it that says how
    urgent that is; "" where there is none. A question has none.
    """
    found: list[str] = []
    before = ""
    for one in sentences(text):
        if not one.endswith(("?", "\uff1f")) and any(
            language.pattern(f"{_INTENTIONS}.later", r"\b{}\b").search(
                language.pattern(f"{_INTENTIONS}.otherwise").sub(" ", one)  # words that mean something else here
            )
            for language in all_cues(_INTENTIONS)
        ):
            found.append(one)
        elif found and found[-1] == before and len(one.split()) <= _BRIEF and priority(one) != MEDIUM:
            found[-1] += f" {one}"
        before = one
    return "\n".join(found)[:_LONGEST_INTENTION]


def priority(text: str) -> str:
    """How urgent a message says that is: ``high``, ``medium`` or ``low``."""
    if _any("not_urgent", text):
        return LOW
    return HIGH if _any("urgent", text) else MEDIUM


def _any(name: str, text: str) -> bool:
    return any(language.pattern(f"{_INTENTIONS}.{name}", r"\b{}\b").search(text) for language in all_cues(_INTENTIONS))


MOST = 5
"""The most decisions, and the most pieces of knowledge, of one message."""
_FEWEST_WORDS, _MOST_WORDS, _LONGEST = 5, 60, 400
_PERSONAL = frozenset({"location", "fact"})
_FEWEST_NAMING = 4  # a path says more than a word

_TABLE = "statements"


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence that lasts.

    Attributes:
        text: the sentence.
        decides: whether it states a decision; else a piece of knowledge.
        sort: of a decision ``choice``, ``change``, ``rejection``, ``deferral``; of knowledge ``cause``, ``lesson``,
            ``constraint``, ``location``, ``fact``.
    """

    text: str
    decides: bool
    sort: str


def statements(text: str) -> list[Statement]:
    """What a message decides or states, in order; of each at most ``MOST``."""
    found = [one for sentence in sentences(text) if (one := statement(sentence)) is not None]
    decided = [one for one in found if one.decides][:MOST]
    known = [one for one in found if not one.decides][:MOST]
    return [one for one in found if one in decided or one in known]


def facts_in(text: str) -> list[Statement]:
    """What a person's message says of the work that lasts: where something is, and what the project is made of.

    What must be or cannot be is as a rule what the message is to change, and how things are done, preferences keep.
    """
    found = (one for one in map(statement, sentences(text)) if one is not None and one.sort in _PERSONAL)
    return [one for one in found if not is_correction(one.text)][:MOST]


def reports(text: str) -> list[str]:
    """The sentences of a message that report something as done."""
    return [one for one in sentences(text) if _reports(one.replace("\u2019", "'"))]


def _reports(sentence: str) -> bool:
    return len(sentence) <= _LONGEST and any(
        language.pattern(f"{_TABLE}.reported").match(sentence)
        and not language.pattern(f"{_TABLE}.not_done", r"\b{}\b").search(sentence)
        for language in all_cues(_TABLE)
    )


def statement(sentence: str) -> Statement | None:
    """What one sentence decides or states, None where that is nothing that lasts."""
    words = len(sentence.split())
    if not _FEWEST_NAMING <= words <= _MOST_WORDS or len(sentence) > _LONGEST or sentence.endswith(("?", ":")):
        return None
    plain = sentence.replace("\u2019", "'")
    for language in all_cues(_TABLE):
        if language.pattern(f"{_TABLE}.passing").search(plain):
            continue
        for decides, table in ((True, f"{_TABLE}.decisions"), (False, f"{_TABLE}.knowledge")):
            for sort in language.names(table):
                fewest = _FEWEST_NAMING if sort == "location" else _FEWEST_WORDS
                if words >= fewest and language.pattern(f"{table}.{sort}").search(plain):
                    return Statement(sentence, decides, sort)
    return None


WORKING, PROSPECTIVE, PROCEDURAL, EPISODIC, SEMANTIC = "working", "prospective", "procedural", "episodic", "semantic"
PREFERENCE = "preference"
PENDING, DONE = "pending", "done"
_LONGEST_MEMORY = 8_000
_LONGEST_NAME = 64
_MOST_LISTED = 50
_COLOURS = regex(r"\x1b\[[0-9;?]{0,16}[ -/]{0,4}[@-~]")
_INTENT_WORDS = frozenset(terms("todo to do later need needs plan planning please remember should must want i we let"))
_MATCHED, _COVERED, _FEWEST = 0.75, 0.6, 2
_REPORTED, _FEWEST_REPORTED = 0.8, 3
REPORT = "report"


def of_note(text: str, event: SessionEvent) -> MemoryItem:
    """What a person asked to be kept, as it is: a preference where it says how things are to be done, something to
    do where it says so, else knowledge.
    """
    plain = shown(_COLOURS.sub("", text)).strip()
    trust = Trust.HUMAN if by_person(event) else Trust.AGENT
    kept = _stated_item(Statement(plain, False, "note"), event, trust)
    kept = kept.replace(origin=replace(kept.origin, role="user"))
    if corrections(plain):
        return kept.replace(memory_type=PREFERENCE)
    return _intended(kept, plain) if intention(plain) else kept


def of_task(task: Task, event: SessionEvent, key: str) -> MemoryItem:
    """How a task was done: its words and the steps that were seen meanwhile."""
    lines = [task.text, *([task.more] if task.more else [])]
    if task.steps:
        lines += ["Steps:", *(f"{number}. {step}" for number, step in enumerate(task.steps, 1))]
    facts: dict[str, Any] = {"task_type": task.sort, "success": True}
    if task.minutes is not None:
        facts["duration_minutes"] = task.minutes
    if event.session:
        facts["session_id"] = event.session
    return MemoryItem(
        _plain("\n".join(lines)),
        PROCEDURAL,
        id=_stable("", task.text),
        timestamp=time_in(event.moment),
        origin=replace(_origin(event), role="assistant", task=task.text[:200]),
        trust=Trust.AGENT.value,
        metadata={**facts, "told_by": key},
    )


def repeated_task(known: MemoryItem, done: MemoryItem) -> MemoryItem:
    """A task's item after the task was done once more: its words stay as they are."""
    if known.metadata.get("told_by") == done.metadata["told_by"]:
        return known
    times = known.metadata.get("times")
    count = times + 1 if isinstance(times, int) and not isinstance(times, bool) else 2
    return known.replace(metadata={**known.metadata, **done.metadata, "times": count})


def completed_intentions(task: MemoryItem, intended: Iterable[MemoryItem]) -> list[MemoryItem]:
    """The pending intentions that a task clearly carries out: most words of each are in the other."""
    did = _task_terms(task.content.partition("\n")[0])
    found = []
    for item in intended:
        meant = _task_terms(item.content)
        both = len(did & meant)
        if both >= _FEWEST and both >= _MATCHED * len(meant) and both >= _COVERED * len(did):
            found.append(item)
    return found


def reported_intentions(sentence: str, intended: Iterable[MemoryItem]) -> list[MemoryItem]:
    """The intentions that a sentence reports as done: it names nearly all that was meant, and may say more."""
    did = _task_terms(sentence)
    meant = ((item, _task_terms(item.content)) for item in intended)
    return [item for item, words in meant if len(words & did) >= max(_FEWEST_REPORTED, _REPORTED * len(words))]


def mark_done(item: MemoryItem, by: str) -> MemoryItem:
    """An intention that was carried out. ``by``: the id of the task's item, or ``report``."""
    return item.replace(status=DONE, metadata={**item.metadata, "done_by": by})


def _intended(asked: MemoryItem, later: str) -> MemoryItem:
    return asked.replace(
        content=later,
        memory_type=PROSPECTIVE,
        id=_stable("todo", later),
        status=PENDING,
        metadata={**asked.metadata, "priority": priority(later)},
    )


def _listed(event: SessionEvent, name: str, sort: str) -> Iterator[Statement]:
    """What somebody has found in a session already: ``{"description", "type"}``."""
    listed = event.fields.get(name)
    for one in listed[:_MOST_LISTED] if isinstance(listed, list) else ():
        if isinstance(one, Mapping) and isinstance(given := one.get("description"), str) and (text := _plain(given)):
            yield Statement(text, name == "events", str(one.get(sort) or "other")[:50])


def _stated_item(one: Statement, event: SessionEvent, trust: Trust = Trust.AGENT) -> MemoryItem:
    fact = {"decision_type" if one.decides else "category": one.sort}
    return MemoryItem(
        one.text,
        EPISODIC if one.decides else SEMANTIC,
        id=_stable("", one.text),
        timestamp=time_in(event.moment),
        origin=replace(_origin(event), role="user" if trust is Trust.HUMAN else "assistant"),
        trust=trust.value,
        metadata={**fact, **({"session_id": event.session} if event.session else {})},
    )


def _origin(event: SessionEvent) -> Origin:
    mate = " ".join(event.text("teammate_name").split())[:_LONGEST_NAME]
    return Origin(agent=event.agent or mate or event.client, session=event.session)


def _stable(prefix: str, text: str) -> str:
    named = "-".join(filter(None, (prefix, slug(text) or "memory")))
    return f"{named}-{digest(normalised(text), '')[:8]}"


def _plain(text: str) -> str:
    """A text as an item can hold it: no terminal colours, hidden characters shown, not too long."""
    return shortened(shown(_COLOURS.sub("", text)).strip(), _LONGEST_MEMORY)


def _task_terms(text: str) -> set[str]:
    return set(terms(text)) - _INTENT_WORDS


Warned = Callable[[StateSnapshot], tuple[str, ...]]
_TWICE_SECONDS = 10.0
_MOST_EPISODES = 100
_MOST_STEPS = 12
_STEP_LENGTH = 160


@dataclass(slots=True)
class ExtractedMemories:
    """What some events say.

    Attributes:
        items: new items, by id.
        done: the items of tasks that were completed, by id.
        episodes: what happened and teaches something.
        corrections: sentences in which a person corrects the agent, or says how things are done, each with its event.
        reports: sentences in which an agent reports something as done, each with its event.
        typed: the prompts, as they were typed.
    """

    items: dict[str, MemoryItem] = field(default_factory=dict)
    done: dict[str, MemoryItem] = field(default_factory=dict)
    episodes: list[Episode] = field(default_factory=list)
    corrections: list[tuple[str, SessionEvent]] = field(default_factory=list)
    reports: list[tuple[str, SessionEvent]] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)


def extract_memories(
    events: Sequence[PendingEvent], notes: SessionNotes, root: Path, warned: Warned
) -> ExtractedMemories:
    """What events say; the notes learn what the next ones have to know.

    Args:
        root: the folder from which files are named.
        warned: returns the items a situation was warned with.
    """
    extracted = ExtractedMemories()
    for pending in events:
        notes.upto, notes.last = pending.end, pending.key
        event = pending.event
        if _seen_before(event, notes):
            continue
        notes.session, notes.heard, notes.ended = event.session, event.moment, event.name == spool.SESSION_END
        if event.name == spool.PROMPT:
            _prompt(event, pending.key, extracted)
            continue
        if event.name in (spool.STOP, spool.SUBAGENT_STOP):  # decisions become events, what it states knowledge
            message = event.text("last_assistant_message")
            listed = [*_listed(event, "events", "type"), *_listed(event, "concepts", "category")]
            items = [_stated_item(one, event) for one in (*statements(_plain(message)), *listed)]
            extracted.items |= {item.id: item for item in items}
            extracted.reports += [(one, event) for one in reports(message)]
            continue
        for task in completed(event, notes):
            done = of_task(task, event, pending.key)
            extracted.done[done.id] = done
        if event.name in (spool.TOOL_DONE, spool.TOOL_FAILED) and teaches(event):
            episode = _episode(event, notes, root, warned)
            if episode is not None and notes.episodes < _MOST_EPISODES:
                notes.episodes += 1
                named = slug(clean_text(episode.action.description, _STEP_LENGTH)) or "step"  # no secret in a name
                extracted.episodes.append(replace(episode, id=f"{named}-{pending.key[:10]}"))
    return extracted


def _prompt(event: SessionEvent, key: str, extracted: ExtractedMemories) -> None:
    """What a prompt leaves: a note as it is; else what the session is about, and what is to be done later."""
    extracted.typed.append(event.text("prompt"))
    words = own_words(event)
    if not words:
        return
    if kept := note(words):
        item = of_note(kept, event)
        extracted.items[item.id] = item
        return
    wishes, plain, later = corrections(words), _plain(words), intention(words)
    if plain and not TrivialFilter().is_trivial(plain) and (not wishes or passed_over(words)):
        asked = MemoryItem(
            plain,
            WORKING,
            id=f"{slug(plain) or 'prompt'}-{key[:10]}",
            timestamp=time_in(event.moment),
            origin=replace(_origin(event), role="user"),
            trust=(Trust.HUMAN if by_person(event) else Trust.AGENT).value,
            metadata={"session_id": event.session} if event.session else {},
        )
        intended = [_intended(asked, _plain(later))] if later else []
        facts = [one for one in facts_in(words) if one.text not in wishes] if by_person(event) else []
        items = [asked, *intended, *(_stated_item(one, event, Trust.HUMAN) for one in facts)]
        extracted.items |= {item.id: item for item in items}
    if by_person(event):
        extracted.corrections += [(one, event) for one in wishes]


def _episode(event: SessionEvent, notes: SessionNotes, root: Path, warned: Warned) -> Episode | None:
    """What a tool's use teaches: that something fails, and that it works after a failure or a warning."""
    thing = digest(same_thing(event, root))
    error = failure(event)
    state, action = situation_of(event, root), Action(event.tool, description_of(event, root))
    moment = time_in(event.moment)
    if error:
        how = digest(" ".join(error.split())[:400])
        if notes.failures.get(thing) == how:  # the same once more
            return None
        notes.failures[thing] = how
        return Episode.create(state, action, Outcome.FAILURE, error, timestamp=moment, warned=warned(state))
    if event.name == spool.TOOL_FAILED:  # a person stopped it
        return None
    step = " ".join(clean_text(action.description, _STEP_LENGTH).split())
    if step and step not in notes.steps:
        notes.steps = [*notes.steps, step][-_MOST_STEPS:]
    helped = warned(state)
    if not helped and not notes.failures.get(thing):
        return None
    notes.failures[thing] = ""
    return Episode.create(state, action, Outcome.SUCCESS, timestamp=moment, warned=helped)


def _seen_before(event: SessionEvent, notes: SessionNotes) -> bool:
    """Whether the same was reported a moment ago: a program runs the hooks of each of its settings files."""
    known = event.text("prompt_id" if event.name == spool.PROMPT else "tool_use_id")
    fields = sorted(event.fields.items(), key=lambda entry: entry[0])
    shape = f"{known} {event.text('prompt')} {event.fields.get('tool_input')!r}" if known else normalised(repr(fields))
    key = digest(event.name, event.agent, event.tool, shape)
    before, now = time_in(notes.seen.pop(key, "")), time_in(event.moment)
    notes.seen[key] = event.moment
    return before is not None and now is not None and abs((now - before).total_seconds()) <= _TWICE_SECONDS


# -- steps -------------------------------------------------------------------------------------------------------------
TASK_TOOLS = frozenset({"TodoWrite", "TaskCreate", "TaskUpdate"})
"""The tools by which an agent plans."""
_LOOKING_TOOLS = (
    "Agent AskUserQuestion EnterPlanMode ExitPlanMode Glob Grep LS Read Skill Task TaskGet TaskList TaskOutput "
    "ToolSearch WebFetch WebSearch"
)
_LOOKING = TASK_TOOLS.union(_LOOKING_TOOLS.split())
_FILE_KEYS = ("file_path", "notebook_path", "path")
_AIM_KEYS = ("description", "query", "pattern", "url", "prompt", "intent")
# What a person stopped or forbade says nothing of the step itself.
_STOPPED = regex(
    r"user (?:doesn'?t|does not) want|was rejected|permission (?:was )?denied by|requires approval|"
    r"interrupted by (?:the )?user|tool use was (?:rejected|cancelled)|hasn'?t been (?:granted|read)|"
    r"has not been read yet",
    re.I,
)
# An edit that did not take: the file's text was another one than the agent had in mind, which the next look puts right.
_SLIP = regex(
    r"string to replace (?:was )?not found|has been (?:unexpectedly )?modified since|matches of the string to replace|"
    r"no changes to make|InputValidationError",
    re.I,
)
# Commands whose exit code is an answer, not an error.
_ASKING = regex(r"\s*(?:[^\s=]+=\S+ )*(?:grep|egrep|rg|diff|test|\[|which|command -v|pgrep|git diff|cmp)\b")
_EXIT = regex(r"^(?:Error: )?(?:Exit code:?|exited with(?: code)?|Command failed with exit code) (\d+)\s*", re.I)
_GLUE = regex(r"&&|\|\||;|\n")
_PREPARING = ("cd ", "export ", "source ", "echo ")
_SETTING = regex(r"(?<!\S)(?:\w+=\S* +)+")


def situation_of(event: SessionEvent, root: Path) -> StateSnapshot:
    """The situation in which a tool is used: the same before it ran and after, so that a warning finds its outcome.

    Args:
        event: about a tool.
        root: the workspace; files below it are named from there.
    """
    given = event.mapping("tool_input")
    aim = next((text for key in _AIM_KEYS if isinstance(text := given.get(key), str) and text.strip()), "")
    aim = _command(event) or aim
    files = [_named(text, event.cwd, root) for key in _FILE_KEYS if isinstance(text := given.get(key), str) and text]
    return StateSnapshot.create(
        files,
        aim[:_LONGEST] or description_of(event, root),
        tool=event.tool,
        agent=event.agent or event.client,
        session=event.session,
    )


def description_of(event: SessionEvent, root: Path) -> str:
    """What a tool is used for, in a line: ``Edit src/auth.py``, ``pytest -q``."""
    given = event.mapping("tool_input")
    if command := _command(event):
        return " ".join(command.split())[:_LONGEST]
    for key in _FILE_KEYS:
        if isinstance(path := given.get(key), str) and path:
            return f"{event.tool} {_named(path, event.cwd, root)}"
    argument = next((text for text in given.values() if isinstance(text, str) and text.strip()), "")
    return f"{event.tool} {' '.join(argument.split())[:_LONGEST]}".strip()


def teaches(event: SessionEvent) -> bool:
    """Whether what came of a tool's use may teach something: it changes or runs things, and was not stopped."""
    return bool(event.tool) and event.tool not in _LOOKING and event.fields.get("is_interrupt") is not True


def failure(event: SessionEvent) -> str:
    """What went wrong when a tool was used; "" where nothing did, or a person stopped it."""
    reported = _reported_failure(event)
    if not reported or _STOPPED.search(reported) or (not _command(event) and _SLIP.search(reported)):
        return ""
    code = _EXIT.match(reported)
    if _ASKING.match(_command(event)) and code is not None and not reported[code.end() :].strip():
        return ""
    return reported


def same_thing(event: SessionEvent, root: Path) -> str:
    """What a call tries, however it is worded: the file, or the program with what it is to do."""
    given = event.mapping("tool_input")
    for key in _FILE_KEYS:
        if isinstance(path := given.get(key), str) and path:
            return f"file {_named(path, event.cwd, root)}"
    if command := _command(event):
        return f"{event.tool} {_program(command)}"
    return f"{event.tool} {json.dumps(given, sort_keys=True, default=str)[:_LONGEST]}"


def _command(event: SessionEvent) -> str:
    """The command that a tool runs, in one text; "" where it runs none."""
    given = event.mapping("tool_input")
    for key in ("command", "cmd"):
        argv = given.get(key)
        if isinstance(argv, list) and argv and all(isinstance(word, str) for word in argv):
            return str(argv[-1] if len(argv) == 3 and argv[1].startswith("-") and "c" in argv[1] else " ".join(argv))
        if isinstance(argv, str) and argv.strip():
            return argv
    return ""


def _reported_failure(event: SessionEvent) -> str:
    if event.name == spool.TOOL_FAILED:
        return event.text("error").strip() or "it failed"
    response = event.fields.get("tool_response")
    if isinstance(response, Mapping):
        return _failed(response, ran=bool(_command(event)))
    if isinstance(response, str) and (_EXIT.match(response) or response.startswith(("Error:", "<tool_use_error>"))):
        code = _EXIT.match(response)
        return "" if code is not None and code[1] == "0" else response.strip()
    return ""


def _failed(response: Mapping[str, Any], *, ran: bool) -> str:
    """What a tool's answer says of a failure. ``ran``: it ran a command; a ``code`` of others may be that of a page."""
    codes = (response.get(key) for key in ("exit_code", "exitCode", "returncode", *(("code",) if ran else ())))
    code = next((one for one in codes if isinstance(one, int) and not isinstance(one, bool)), 0)
    failed = (
        code != 0
        or any(response.get(key) is True for key in ("is_error", "isError"))
        or response.get("success") is False
        or response.get("status") in ("error", "failed", "failure")
        or (isinstance(response.get("error"), str) and bool(str(response["error"]).strip()))
    )
    if not failed or response.get("interrupted") is True:
        return ""
    texts = (response.get(key) for key in ("error", "stderr", "output", "message", "content", "stdout"))
    message = next((text.strip() for text in texts if isinstance(text, str) and text.strip()), "")
    exit_code = f"Exit code {code}" if code else ""
    return "\n".join(filter(None, (exit_code, message))) or "it failed"


def _program(command: str) -> str:
    """The last part of a command that is no preparation, by its program and what that is to do."""
    whole = (part.strip() for part in _GLUE.split(command))
    parts = [part for part in whole if part and not part.startswith(_PREPARING)]
    last = _SETTING.sub("", parts[-1] if parts else command, count=1).partition("|")[0]
    words = [word for word in last.split() if not word.startswith("-") and not word[0].isdigit()]
    return " ".join(words[:3])[:_LONGEST]


def _named(path: str, cwd: str, root: Path) -> str:
    """A path from the workspace's folder where it is below that."""
    try:
        whole = Path(cwd or root, path)
        return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else path
    except ValueError:
        return path
