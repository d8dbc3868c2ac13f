"""Checkpoint manifests: what a checkpoint says of itself, proved by digests of the payload and of the manifest (S6).

Owns the fields of ``manifest.json``, its bytes, and the ids of checkpoints. Where it lies and what the payload holds it
does not know.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from memfs.errors import CheckpointInvalid
from memfs.files import jsontext
from memfs.model.statepaths import PAYLOAD
from memfs.model.time import parse_time

FORMAT = 1
_ID = re.compile(r"ckpt_(\d{8})_(\d{4})(?:_(\d{1,6}))?")
_HEX = re.compile(r"[0-9a-f]{64}")
_LARGEST = 1 << 60
_MINUTE = "%Y%m%d%H%M"
_MOST_TURNS = 999_999
_NEVER = datetime.min.replace(tzinfo=UTC)
_REMEDY = "'memfs checkpoint list' shows the others"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a checkpoint says of itself.

    Attributes:
        id: its name.
        created: the moment it shows, ISO 8601.
        reason: why it was made.
        iteration: the newest iteration in it, None where there was none.
        files, bytes: how many documents there are in it, and their bytes.
        unpacked: bytes of the archive in the payload.
        payload_bytes, payload_sha256: of ``state.tar.zst``.
        revision: the last commit at that moment, "" where there was none.
        left_out: what could not be taken along, and why.
    """

    id: str
    created: str
    reason: str = ""
    iteration: int | None = None
    files: int
    bytes: int
    unpacked: int
    payload_bytes: int
    payload_sha256: str
    revision: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def timestamp(self) -> datetime:
        """The moment it shows."""
        return parse_time(self.created)


def encode(manifest: Manifest) -> bytes:
    """The bytes of the file, always the same ones."""
    facts: dict[str, Any] = {**asdict(manifest), "left_out": list(manifest.left_out)}
    size, digest = facts.pop("payload_bytes"), facts.pop("payload_sha256")
    values = {"format": FORMAT, **facts, "payload": {"file": PAYLOAD, "bytes": size, "sha256": digest}}
    return jsontext.document({**values, "sha256": _digest(values)}).encode("utf-8")


def decode(data: bytes, checkpoint: str) -> Manifest:
    """The manifest in a file's bytes; one bit that is not as it was written makes it invalid.

    Args:
        checkpoint: the id by which its folder is named.

    Raises:
        CheckpointInvalid: it is damaged, of a newer format, or another checkpoint's.
    """
    try:
        values = jsontext.load(data.decode("utf-8"))
        found = _manifest(values)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise invalid(checkpoint, "its manifest cannot be read") from None
    if values["format"] != FORMAT:
        raise invalid(checkpoint, f"its format is {values['format']!a}, this memfs knows {FORMAT}")
    if encode(found) != data:
        raise invalid(checkpoint, "its manifest is damaged")
    if found.id != checkpoint:
        raise invalid(checkpoint, f"its manifest is that of {found.id!a}")
    return found


def _manifest(values: Any) -> Manifest:
    payload = values["payload"]
    found = Manifest(
        **{name: values[name] for name in ("id", "created", "reason", "iteration", "files", "bytes", "unpacked")},
        payload_bytes=payload["bytes"],
        payload_sha256=payload["sha256"],
        revision=values["revision"],
        left_out=tuple(values["left_out"]),
    )
    numbers = (found.files, found.bytes, found.unpacked, found.payload_bytes, found.iteration or 0)
    if not all(type(number) is int and 0 <= number < _LARGEST for number in numbers):
        raise ValueError("numbers")
    if not _ID.fullmatch(found.id) or not _HEX.fullmatch(found.payload_sha256):
        raise ValueError("names")
    parse_time(found.created)
    return found


def _digest(values: dict[str, Any]) -> str:
    text = json.dumps(values, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


# -- ids ----------------------------------------------------------------------------------------------------------
def next_id(moment: datetime, known: Iterable[str], *, among_clones: bool = False) -> str:
    """The id of a new checkpoint, later than all that are known, whatever the clock says meanwhile.

    Args:
        moment: when it was taken; its minute counts unless a known one is later.
        known: the ids of all there are, and the last one that was given.
        among_clones: other clones make some, too: a payload stays where it was made, and one id of two clones would
            leave one of them with a manifest that is not its own; so the turn is hardly ever theirs.
    """
    minute, turn = f"{moment.astimezone(UTC):%Y%m%d%H%M}", 0
    last = max((order(one) for one in known if minute_of(one) > _NEVER), default=(minute, 0))
    if last >= (minute, 0):
        minute, turn = last
    turn = max(turn + 1, moment.second * 10_000 + 2 + secrets.randbelow(9_998) if among_clones else 1)
    if turn > _MOST_TURNS:
        minute, turn = f"{_moment(minute) + timedelta(minutes=1):{_MINUTE}}", 1
    return f"ckpt_{minute[:8]}_{minute[8:]}" + (f"_{turn}" if turn > 1 else "")


def is_id(text: object) -> bool:
    """Whether something has the form of an id."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def order(checkpoint: str) -> tuple[str, int]:
    """What sorts ids as they were given: by minute and turn, as numbers."""
    match = _ID.fullmatch(checkpoint)
    return (match[1] + match[2], int(match[3] or 1)) if match else ("", 0)


def minute_of(checkpoint: str) -> datetime:
    """The minute that an id names; the earliest time there is where it names none."""
    try:
        return _moment(order(checkpoint)[0])
    except ValueError:
        return _NEVER


def _moment(minute: str) -> datetime:
    return datetime.strptime(minute, _MINUTE).replace(tzinfo=UTC)


def invalid(checkpoint: str, reason: str, hint: str = _REMEDY) -> CheckpointInvalid:
    """The error for a checkpoint that cannot be used."""
    return CheckpointInvalid(f"the checkpoint {checkpoint} cannot be used: {reason}", field=checkpoint, hint=hint)


def reason_of(error: CheckpointInvalid) -> str:
    """Why a checkpoint cannot be used, without its name."""
    return error.message.partition("cannot be used: ")[2] or error.message
