"""Tally: how many memories there are of each sort, and what they weigh.

Owns counting and measuring for ``memfs stats``; it changes nothing.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memfs.store import Store
from memfs.store.parts import Parts, below_content


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Numbers of items by type and by layer, and bytes: of items by type, of files, of all of git, of the index."""

    items: int
    types: Mapping[str, int]
    layers: Mapping[str, int]
    type_bytes: Mapping[str, int]
    content_bytes: int
    repository_bytes: int
    index_bytes: int


def tally(store: Store, parts: Parts) -> Tally:
    """Count and measure the workspace as its files are now. ``repository_bytes`` is that of the whole repository."""
    types, sizes = numbers(store, parts)
    layers: Counter[str] = Counter()
    for name, number in types.items():
        layers[parts.kinds.get(name).layer.value] += number
    return Tally(
        items=sum(types.values()),
        types=types,
        layers=dict(layers.most_common()),
        type_bytes=sizes,
        content_bytes=sum(sizes.values()),
        repository_bytes=_weight(parts.repository.common_dir / "objects"),
        index_bytes=parts.index.stats().bytes,
    )


def numbers(store: Store, parts: Parts) -> tuple[dict[str, int], dict[str, int]]:
    """How many items there are of each type, most first, and how many bytes they are, as the files are now."""
    store.follow()
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for path, (_, stamp) in parts.index.stamps().items():
        kind = parts.kinds.at(below_content(path))
        if kind is not None:
            counts[kind.name] += 1
            sizes[kind.name] += stamp.size
    return dict(counts.most_common()), dict(sizes)


def _weight(folder: Path) -> int:
    total = 0
    for place, _folders, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except FileNotFoundError:  # git removes objects it has packed
                continue
    return total
