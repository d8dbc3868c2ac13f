"""State paths: the path of each state document below the workspace, and what a path says about its document.

Any name of an agent, task or hypothesis is encoded as a file name that is safe everywhere. No disk is read.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from memfs.startup import regex, sha256

_CONTENT = "ContextMemory"
ITERATIONS = f"{_CONTENT}/iterations"
CHECKPOINTS = f"{_CONTENT}/checkpoints"
THREADS = f"{_CONTENT}/threads"
AGGREGATES = f"{_CONTENT}/aggregates"
STATE_FOLDERS = (f"{ITERATIONS}/", f"{CHECKPOINTS}/", f"{AGGREGATES}/")
"""The folders that hold the state of a multi-agent system."""
ARCHIVE = f"{_CONTENT}/archive"
AGGREGATE_NAMES = ("effectiveness_metrics", "pattern_history", "research_progress")
MANIFEST = "manifest.json"
PAYLOAD = "state.tar.zst"
SIDECAR_SUFFIX = ".zst"
MERGES = "merges"
"""The folder, below the workspace's own inside git's, where conflicts wait for a merge to be over."""
WATCHERS, BACKUPS = "watchers", "backups.json"
"""Beside it, what watches says so, and what is known of backups."""

HYPOTHESIS_KINDS = ("hypothesis_version", "hypothesis")
"""The documents that hold a hypothesis: in each iteration its earlier versions, then the current one."""

_LONGEST = 200
_KEPT = 150
_IN_DOCUMENTS = 10_000  # no schema lets a document hold a longer one: asking for it need not cost its length
_SHORTENED = "%-"
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.")
_DEVICE = r"(?i)(?:con|prn|aux|nul|conin\$|conout\$|com[0-9]|lpt[0-9])(?:\.|$)"
_ESCAPED = rb"%([0-9A-Fa-f]{2})"
_TURN = regex(r"\.[0-9]+$")
_OWN_ENDING = regex(r"\.(?:json|zst|tmp|lock)$", re.IGNORECASE)
_ITERATION = rf"{ITERATIONS}/iteration_([0-9]{{3,12}})(?:/(.+))?"
_CHECKPOINT = rf"{CHECKPOINTS}/[^/]+/{re.escape(MANIFEST)}"
_SNAPSHOTS, _WRITES, _SUBGRAPHS = "checkpoints", "writes", "subgraphs"
_THREAD = rf"{THREADS}/([^/]+)(?:/{_SUBGRAPHS}/([^/]+))?/(?:({_SNAPSHOTS})/([^/]+)|({_WRITES})/([^/]+)/([^/]+))\.json"
_SIDECAR = r"(.+\.json)\.[0-9a-f]{16}\.zst"
_BELOW = {
    "state_updates": ("state_update", 1),
    "agent_outputs": ("agent_output", 2),
    "hypotheses": ("hypothesis", 1),
    "hypothesis_versions": ("hypothesis_version", 1),
    "tournament_data": ("tournament_result", 1),
    "continuations": ("continuation", 1),
    "feedback": ("feedback", 1),
    "conflicts": ("conflict", 1),
}
_DIRECT = {"system_state.json": "system_state", "meta_review.json": "meta_review"}


# -- names --------------------------------------------------------------------------------------------------------
def encode_name(text: str) -> str:
    """A file name for any name; two names never share one, but for letter case where the disk ignores that.

    Letters and digits of ASCII, ``_``, ``-`` and ``.`` stay; anything else is written ``%XX`` by its UTF-8 bytes, as in
    an address. So is a dot in front, at the end, or before what reads as a turn or as an ending of memfs's own. A name
    that would grow longer than 200 characters keeps its beginning and ends in a digest of the whole: ``decode_name``
    gives such a one back unchanged, and the document has it verbatim.

    Raises:
        ValueError: there is no name, or it is no Unicode text.
    """
    if not text:
        raise ValueError("a name must not be empty")
    data = text.encode("utf-8")  # UnicodeEncodeError is a ValueError
    seen = data if len(text) <= _IN_DOCUMENTS else data[: 2 * _LONGEST]
    name = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in seen)
    for pattern in (_TURN, _OWN_ENDING):
        if match := pattern.search(name):
            name = f"{name[: match.start()]}%2E{name[match.start() + 1 :]}"
    if name.startswith("."):
        name = "%2E" + name[1:]
    if name.endswith("."):
        name = name[:-1] + "%2E"
    if re.match(_DEVICE, name):
        name = f"%{ord(name[0]):02X}{name[1:]}"
    if len(name) > _LONGEST:
        kept = re.sub(r"%[0-9A-F]?$", "", name[:_KEPT])
        name = f"{kept}{_SHORTENED}{sha256(data).hexdigest()[:32]}"
    return name


def decode_name(text: str) -> str:
    """The name that a file name stands for; one that was shortened comes back unchanged."""
    if _SHORTENED in text or "%" not in text:
        return text
    data = re.sub(_ESCAPED, lambda match: bytes([int(match[1], 16)]), text.encode("utf-8", "surrogateescape"))
    return data.decode("utf-8", "replace")


def stamp_of(moment: datetime) -> str:
    """A point in time as file names have it: UTC, to the microsecond, sorting by time."""
    there = moment.astimezone(UTC)
    return f"{there.year:04d}{there:%m%dT%H%M%S.%f}Z"  # %Y gives an early year fewer digits


# -- paths --------------------------------------------------------------------------------------------------------
def iteration_folder(n: int) -> str:
    """The folder of an iteration.

    Raises:
        ValueError: iterations are counted from 0 to 999,999,999,999.
    """
    if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n < 10**12:
        raise ValueError(f"{n!r} is not the number of an iteration")
    return f"{ITERATIONS}/iteration_{n:03d}"


def system_state_path(n: int) -> str:
    """The header of an iteration."""
    return f"{iteration_folder(n)}/system_state.json"


def meta_review_path(n: int) -> str:
    """The meta-review of an iteration."""
    return f"{iteration_folder(n)}/meta_review.json"


def update_path(n: int, timestamp: datetime, turn: int = 1) -> str:
    """A state update; ``turn`` distinguishes those of one microsecond."""
    return f"{iteration_folder(n)}/state_updates/{stamp_of(timestamp)}{_turn(turn)}.json"


def output_path(n: int, agent: str, task: str, turn: int = 1) -> str:
    """An agent's output of a task; ``turn`` distinguishes several of one task."""
    return f"{iteration_folder(n)}/agent_outputs/{encode_name(agent)}/{encode_name(task)}{_turn(turn)}.json"


def hypothesis_path(n: int, hypothesis: str) -> str:
    """A hypothesis as it is in an iteration."""
    return f"{iteration_folder(n)}/hypotheses/{encode_name(hypothesis)}.json"


def version_path(n: int, hypothesis: str, timestamp: datetime, turn: int = 1) -> str:
    """A version of a hypothesis that a later one replaced; ``turn`` distinguishes those of one microsecond."""
    name = f"{encode_name(hypothesis)}-{stamp_of(timestamp)}{_turn(turn)}"
    return f"{iteration_folder(n)}/hypothesis_versions/{name}.json"


def tournament_path(n: int, result: str) -> str:
    """One result of the tournament."""
    return f"{iteration_folder(n)}/tournament_data/{encode_name(result)}.json"


def token_path(n: int, token: str) -> str:
    """The state kept under a continuation token."""
    return f"{iteration_folder(n)}/continuations/{encode_name(token)}.json"


def feedback_path(n: int, agent: str) -> str:
    """Which feedback an agent was given in an iteration."""
    return f"{iteration_folder(n)}/feedback/{encode_name(agent)}.json"


def conflict_path(n: int, document: str, moment: datetime, turn: int = 1) -> str:
    """The record of a conflict over a document, named by its path below the iteration's folder."""
    inside = document.removeprefix(iteration_folder(n) + "/").removesuffix(".json")
    return f"{iteration_folder(n)}/conflicts/{encode_name(inside)}-{stamp_of(moment)}{_turn(turn)}.json"


def manifest_path(checkpoint: str) -> str:
    """The manifest of a checkpoint."""
    return f"{CHECKPOINTS}/{checkpoint}/{MANIFEST}"


def payload_path(checkpoint: str) -> str:
    """The payload of a checkpoint."""
    return f"{CHECKPOINTS}/{checkpoint}/{PAYLOAD}"


def aggregate_path(name: str) -> str:
    """One of the aggregates."""
    return f"{AGGREGATES}/{name}.json"


def thread_folder(thread: str, namespace: str | None = None) -> str:
    """The folder of a graph's thread; with a namespace, where the documents of that one are ("" is the graph's own)."""
    top = f"{THREADS}/{encode_name(thread)}"
    return f"{top}/{_SUBGRAPHS}/{encode_name(namespace)}" if namespace else top


def snapshots_folder(thread: str, namespace: str) -> str:
    """The folder of a graph's checkpoints."""
    return f"{thread_folder(thread, namespace)}/{_SNAPSHOTS}"


def snapshot_path(thread: str, namespace: str, checkpoint: str) -> str:
    """A graph's checkpoint."""
    return f"{snapshots_folder(thread, namespace)}/{encode_name(checkpoint)}.json"


def writes_folder(thread: str, namespace: str, checkpoint: str) -> str:
    """The folder of the writes of the tasks that began at a checkpoint."""
    return f"{thread_folder(thread, namespace)}/{_WRITES}/{encode_name(checkpoint)}"


def writes_path(thread: str, namespace: str, checkpoint: str, task: str) -> str:
    """What one task wrote."""
    return f"{writes_folder(thread, namespace, checkpoint)}/{encode_name(task)}.json"


def sidecar_path(document: str, sha256: str) -> str:
    """The file beside a document that holds a value too large for it, named by the digest of the value's bytes."""
    return f"{document}.{sha256[:16]}{SIDECAR_SUFFIX}"


def _turn(turn: int) -> str:
    return f".{turn}" if turn > 1 else ""


# -- what a path says ---------------------------------------------------------------------------------------------
def iteration_of(path: str) -> int | None:
    """The number of the iteration a path is in, None where it is in none."""
    match = re.fullmatch(_ITERATION, path)
    if match is None or match[1] != f"{int(match[1]):03d}":
        return None
    return int(match[1])


def below_iteration(path: str) -> str:
    """The path below its iteration's folder, "" where it is in none."""
    match = re.fullmatch(_ITERATION, path) if iteration_of(path) is not None else None
    return match[2] or "" if match else ""


def document_kind(path: str) -> str:
    """Which document a path names: ``system_state``, ``state_update``, ``agent_output``, ``hypothesis``,
    ``hypothesis_version``, ``tournament_result``, ``meta_review``, ``continuation``, ``feedback``, ``conflict``,
    ``checkpoint``, ``aggregate``, ``graph_checkpoint``, ``graph_writes``; "" where it names none.
    """
    if not path.endswith(".json") or "/." in path:
        return ""
    if inside := below_iteration(path):
        folder, _, rest = inside.partition("/")
        kind, depth = _BELOW.get(folder, ("", 0))
        if kind and rest.count("/") == depth - 1 and rest != ".json" and not rest.startswith("/"):
            return kind
        return _DIRECT.get(inside, "")
    if path.startswith(f"{AGGREGATES}/"):
        return "aggregate" if path[len(AGGREGATES) + 1 : -len(".json")] in AGGREGATE_NAMES else ""
    if match := re.fullmatch(_THREAD, path):
        return "graph_checkpoint" if match[3] else "graph_writes"
    return "checkpoint" if re.fullmatch(_CHECKPOINT, path) else ""


def document_of_sidecar(path: str) -> str:
    """The document that a sidecar belongs to, "" where the path is no sidecar's."""
    match = re.fullmatch(_SIDECAR, path)
    return match[1] if match and document_kind(match[1]) else ""


def snapshot_at(path: str) -> tuple[str, str, str] | None:
    """The thread, the namespace and the id of the graph checkpoint that a path names; None where it names none, or
    where one of them was shortened: then only the document says.
    """
    match = re.fullmatch(_THREAD, path)
    if match is None or match[3] is None or _SHORTENED in path:
        return None
    return decode_name(match[1]), decode_name(match[2] or ""), decode_name(match[4])


def task_and_turn(path: str) -> tuple[str, int]:
    """The task (or other name) and the turn that a document's file name stands for."""
    stem = path.rpartition("/")[2].removesuffix(".json")
    match = _TURN.search(stem)
    return (decode_name(stem[: match.start()]), int(match[0][1:])) if match else (decode_name(stem), 1)


def agent_of(path: str) -> str:
    """The agent in whose folder an output is, "" where the path is no output's."""
    return decode_name(path.split("/")[-2]) if document_kind(path) == "agent_output" else ""
