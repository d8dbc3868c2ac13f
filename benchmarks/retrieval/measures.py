"""Measures of an answer: recall, hit, nDCG and reciprocal rank, averaged over questions.

An answer is a list of ids, best first; ids that are not relevant count nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import log2, sqrt
from statistics import mean, pstdev

from benchmarks.retrieval.sets import Asked

DEPTH = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The measures of one answer, or their means over many. All are shares from 0 to 1.

    Attributes:
        recall_1, recall_5, recall_10: share of the evidence among the first so many.
        hit_5, hit_10: whether any evidence is among them.
        ndcg_10: discounted gain of the first ten against the best possible order.
        mrr: one over the rank of the first evidence, 0 below the tenth.
        excluded_10: whether something that must not come back is among the first ten.
    """

    recall_1: float
    recall_5: float
    recall_10: float
    hit_5: float
    hit_10: float
    ndcg_10: float
    mrr: float
    excluded_10: float


def measure(answer: Sequence[str], asked: Asked) -> Measured:
    """The measures of one answer."""
    hits = [found in asked.relevant for found in answer[:DEPTH]]
    total = len(asked.relevant)
    best = sum(1 / log2(rank + 2) for rank in range(min(total, DEPTH)))
    first = next((rank for rank, hit in enumerate(hits, 1) if hit), 0)
    return Measured(
        recall_1=sum(hits[:1]) / total,
        recall_5=sum(hits[:5]) / total,
        recall_10=sum(hits) / total,
        hit_5=float(any(hits[:5])),
        hit_10=float(any(hits)),
        ndcg_10=sum(1 / log2(rank + 2) for rank, hit in enumerate(hits) if hit) / best,
        mrr=1 / first if first else 0.0,
        excluded_10=float(not asked.exclude.isdisjoint(answer[:DEPTH])),
    )


def averaged(found: Sequence[Measured]) -> Measured:
    """The mean over questions."""
    return Measured(**{field.name: mean(getattr(one, field.name) for one in found) for field in fields(Measured)})


def half_widths(found: Sequence[Measured]) -> Measured:
    """Half the width of the 95 % interval of each mean over questions."""
    root = sqrt(len(found))
    return Measured(
        **{field.name: 1.96 * pstdev(getattr(one, field.name) for one in found) / root for field in fields(Measured)}
    )
