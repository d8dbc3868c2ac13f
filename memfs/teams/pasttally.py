"""PastTally: how many memories of each sort a revision had, and what they weighed."""

from __future__ import annotations

from collections import Counter

from memfs.store.parts import below_content
from memfs.teams.past import Past
from memfs.upkeep.tally import Tally


def past_tally(past: Past) -> Tally:
    """Count and measure the items of a revision; nothing is said of its history and its index."""
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    layers: Counter[str] = Counter()
    for path, _, _, size in past.store.index.files():
        kind = past.kinds.at(below_content(path))
        if kind is not None:
            counts[kind.name] += 1
            sizes[kind.name] += size
            layers[kind.layer.value] += 1
    return Tally(
        items=sum(counts.values()),
        types=dict(counts.most_common()),
        layers=dict(layers.most_common()),
        type_bytes=dict(sizes),
        content_bytes=sum(sizes.values()),
        repository_bytes=0,
        index_bytes=0,
    )
