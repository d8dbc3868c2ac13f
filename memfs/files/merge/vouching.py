"""Vouching: who stands behind the words of a joined item (K4, decision 0043).

Owns that nobody's trust covers words that he did not see: one side looked through what the item said, while the other
put different words there. Must not know files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memfs.files.merge.values import Clash, Merged, equal
from memfs.model.item import Trust, lower_trust

_TRUST = "trust"
_WORDS = ("title", "content", "data")


def vouched(merged: Merged, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Merged:
    """The joined item with no more trust than the version has that its words come from; of words from both, the lower.

    Args:
        merged: the joined values, and what gave way.
        ours: the version that wins where only one can.
    """
    sources = [side for side in (ours, theirs) if _says(side, merged.values)]
    stands = _trust(merged.values)
    trust = lower_trust(stands, *map(_trust, sources or (ours, theirs)))
    if len(sources) == 2 or trust == stands:
        return merged
    clash = Clash(field=_TRUST, kept=trust, lost=stands, yielded=_trust(ours) == stands)
    others = tuple(one for one in merged.conflicts if one.field != _TRUST)
    return replace(merged, values={**merged.values, _TRUST: trust}, conflicts=(*others, clash))


def _says(side: Mapping[str, Any], joined: Mapping[str, Any]) -> bool:
    return all(equal(side.get(name) or None, joined.get(name) or None) for name in _WORDS)


def _trust(values: Mapping[str, Any]) -> str:
    trust = values.get(_TRUST, Trust.HUMAN.value)
    return trust if isinstance(trust, str) else ""
