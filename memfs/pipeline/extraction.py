"""Extraction: from a raw draft to a structured one (seed 003, C3).

Owns which fields are filled in from the text and its metadata. What a caller has filled in stays; a text is only ever
added to, never changed. Links to other items are ``memfs.pipeline.neighbours``' business.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from memfs.model import MemoryItem, Phase
from memfs.pipeline.mentions import dates, keywords, names
from memfs.pipeline.wording import gist

_TITLED_FROM = 100
_TITLE_LENGTH = 80
_NAME_LENGTH = 200
_ORIGIN: Mapping[str, tuple[str, ...]] = {
    "session": ("session_id", "session"),
    "agent": ("agent_id", "agent_name", "agent"),
    "task": ("task_id", "task"),
    "tool": ("tool_name", "tool"),
    "speaker": ("speaker",),
    "role": ("role",),
    "phase": ("phase", "edrr_phase"),
}
_MARKUP = re.compile(r"^[#>*\-\s]+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^a-z])")


def extract(item: MemoryItem, now: datetime) -> MemoryItem:
    """The draft with what its text and metadata say of it, each in its own field.

    A title, where it has none and its text is longer than one glance; ``metadata.keywords``, ``metadata.entities`` and
    ``metadata.dates``, where it has none and the text gives any; the parts of ``origin`` that are unknown and that
    ``metadata``, or else ``context``, names: ``session_id``, ``agent_id``, ``task_id``, ``tool_name``, ``speaker``,
    ``role``, ``phase``, ``sequence``.
    """
    text = gist(item)
    said = (item.timestamp or now).date()
    found = {"keywords": keywords(text), "entities": names(text), "dates": dates(text, said)}
    added = {name: list(values) for name, values in found.items() if values and name not in item.metadata}
    return item.replace(
        title=item.title or _title(item.content),
        metadata={**item.metadata, **added},
        origin=dataclasses.replace(item.origin, **_origin(item)),
    )


def _title(content: str) -> str:
    """The first sentence of a longer text; "" for a short one, which is its own title."""
    lines = [line for line in map(str.strip, content.splitlines()) if _MARKUP.sub("", line)]
    if not lines or (len(lines) == 1 and len(content) <= _TITLED_FROM):
        return ""
    first = " ".join(_SENTENCE.split(_MARKUP.sub("", lines[0]), maxsplit=1)[0].split())
    if len(first) <= _TITLE_LENGTH:
        return first.rstrip(":.") or first
    cut = first[:_TITLE_LENGTH]
    return (cut.rpartition(" ")[0] or cut).rstrip(",;:-") + "…"


def _origin(item: MemoryItem) -> dict[str, Any]:
    """The parts of the origin that are unknown and that metadata or context names."""
    found: dict[str, Any] = {}
    for part, keys in _ORIGIN.items():
        if not getattr(item.origin, part) and (name := _named(item, keys)):
            found[part] = name
    if found.get("phase") not in (None, *(phase.value for phase in Phase)):
        del found["phase"]
    place = item.metadata.get("sequence")
    if item.origin.sequence is None and isinstance(place, int) and not isinstance(place, bool) and place >= 0:
        found["sequence"] = place
    return found


def _named(item: MemoryItem, keys: tuple[str, ...]) -> str:
    for values in (item.metadata, item.context):
        for key in keys:
            value = values.get(key)
            if isinstance(value, int) and not isinstance(value, bool):
                value = str(value)
            if isinstance(value, str) and value.strip() and len(value) <= _NAME_LENGTH and value.isprintable():
                return value.strip()
    return ""
