"""Values: items, kinds, queries, ids, time. No input or output, no third-party import."""

from memfs.errors import Problem
from memfs.model.item import Link, MemoryItem, Origin, Phase, RecordedConflict, Stamp, Trust
from memfs.model.kinds import BUILT_IN, Kind, KindTable, Layer, MemoryType
from memfs.model.query import Anchor, Candidate, EarlierVersion, Freshness, Hit, HitPassage, Query, Recall

__all__ = [
    "BUILT_IN",
    "Anchor",
    "Candidate",
    "EarlierVersion",
    "Freshness",
    "Hit",
    "HitPassage",
    "Kind",
    "KindTable",
    "Layer",
    "Link",
    "MemoryItem",
    "MemoryType",
    "Origin",
    "Phase",
    "Problem",
    "Query",
    "Recall",
    "RecordedConflict",
    "Stamp",
    "Trust",
]
