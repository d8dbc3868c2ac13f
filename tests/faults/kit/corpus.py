"""A corpus for tests of search: random items, every filter, and what brute force finds in them.

The same seed gives the same corpus.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from memfs.model import MemoryItem, Origin, Query, Stamp
from memfs.search.analyzer import weighted_terms
from memfs.search.terms import K1, REST, B, idf, weights

START = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = [
    *("postgres", "connection", "pool", "timeout", "retry", "deploy", "kubernetes", "branch", "rollback", "migrate"),
    *("schema", "index", "vector", "cache", "token", "secret", "review", "pattern", "agent", "session", "commit"),
    *("merge", "conflict", "lock", "journal", "archive", "restore", "naïve", "Straße", "数据库", "getUserName"),
]
NOW = 1_790_000_000_000_000_000
TYPES = ("semantic", "episodic", "working")


def seeded(seed: int) -> random.Random:
    """Chance that repeats itself: the same seed gives the same values."""
    return random.Random(seed)


def item(name: str, content: str = "", **fields: object) -> MemoryItem:
    """An item as the store hands it to an index."""
    kind = str(fields.pop("memory_type", "semantic"))
    folder = str(fields.pop("folder", f"ContextMemory/memories/{kind}/2026-01"))
    values = {"timestamp": START, "title": "" if content else name} | fields
    return MemoryItem(content, kind, id=name, path=f"{folder}/{name}.yaml", **values)  # type: ignore[arg-type]


def content(rng: random.Random) -> str:
    """A few words, or now and then so many sentences that they are several passages."""
    sentences = rng.randint(12, 40) if rng.random() < 0.1 else 1
    return ". ".join(" ".join(rng.choices(WORDS, k=rng.randint(1, 12))) for _ in range(sentences))


def corpus(count: int, seed: int = 1) -> list[MemoryItem]:
    """Random items in which every filter has something to find; equal scores and equal times occur."""
    rng = seeded(seed)
    found = []
    for number in range(count):
        kind = rng.choice(TYPES)
        found.append(
            item(
                f"item-{number:05d}",
                content(rng),
                memory_type=kind,
                title=" ".join(rng.choices(WORDS, k=rng.randint(0, 3))),
                tags=tuple(rng.sample(("alpha", "beta", "gamma"), k=rng.randint(0, 3))),
                timestamp=START + timedelta(days=rng.randint(0, 40), microseconds=rng.choice((0, 0, 1))),
                origin=Origin(
                    agent=rng.choice(("", "coder", "Task/7")),
                    speaker=rng.choice(("", "Ada")),
                    session=rng.choice(("", "s1", "s2")),
                    phase=rng.choice(("", "expand", "refine")),
                ),
                importance=rng.choice((0.5, 1.0, 2.5)),
                context={"branch": rng.choice(WORDS)} if rng.random() < 0.4 else {},
                metadata={"notes": [rng.choice(WORDS), 7]} if rng.random() < 0.4 else {},
                folder=f"ContextMemory/memories/{kind}/{rng.choice(('2026-01', '2026-01b', 'by hand'))}",
            )
        )
    return found


def stamp_of(item: MemoryItem, checked: int = NOW) -> Stamp:
    """A stamp such as the tree could take of this item's file."""
    blob = sha256(repr(item).encode("utf-8", "surrogatepass")).hexdigest()[:40]
    return Stamp(len(item.content), NOW - 10**12, NOW - 10**12, 7, blob, checked)


def pairs(*items: MemoryItem, checked: int = NOW) -> list[tuple[MemoryItem, Stamp]]:
    """Items with their stamps, as ``SearchIndex.update`` takes them."""
    return [(item, stamp_of(item, checked)) for item in items]


FILTERS: dict[str, dict[str, object]] = {
    "none": {},
    "type": {"types": frozenset({"semantic"})},
    "types": {"types": frozenset({"semantic", "working"})},
    "unknown type": {"types": frozenset({"nothing"})},
    "tag": {"tags": frozenset({"alpha"})},
    "all of two tags": {"tags": frozenset({"alpha", "gamma"})},
    "unknown tag": {"tags": frozenset({"alpha", "omega"})},
    "agent": {"agents": frozenset({"Task/7"})},
    "sessions": {"sessions": frozenset({"s1", "s2"})},
    "phase": {"phases": frozenset({"refine"})},
    "since": {"since": START + timedelta(days=20)},
    "until": {"until": START + timedelta(days=20)},
    "one instant": {"since": START + timedelta(days=20), "until": START + timedelta(days=20)},
    "folder": {"path": "ContextMemory/memories/semantic/2026-01"},
    "folder with slash": {"path": "ContextMemory/memories/semantic/by hand/"},
    "type and dates": {
        "types": frozenset({"semantic", "episodic"}),
        "since": START + timedelta(days=5),
        "until": START + timedelta(days=30),
    },
    "everything at once": {
        "types": frozenset({"semantic", "episodic"}),
        "tags": frozenset({"beta"}),
        "agents": frozenset({"coder", ""}),
        "sessions": frozenset({"s1"}),
        "phases": frozenset({"expand", ""}),
        "since": START + timedelta(days=1),
        "until": START + timedelta(days=39),
        "path": "ContextMemory/memories",
    },
}


def accepted(candidate: MemoryItem, query: Query) -> bool:
    """Whether an item passes a query's filters, said as plainly as can be."""
    when = candidate.timestamp
    assert when is not None
    checks = [
        not query.types or candidate.type in query.types,
        all(tag in candidate.tags for tag in query.tags),
        not query.agents or candidate.origin.agent in query.agents,
        not query.sessions or candidate.origin.session in query.sessions,
        not query.phases or candidate.origin.phase in query.phases,
        query.since is None or query.since <= when,
        query.until is None or when <= query.until,
        not query.path or candidate.path.startswith(query.path.rstrip("/") + "/"),
    ]
    return all(checks)


def brute_force(items: Iterable[MemoryItem], query: Query) -> list[tuple[str, float]]:
    """Every hit with its score, best first, by looking at each item in turn."""
    held = list(items)
    if not query.text:
        listed = sorted((one for one in held if accepted(one, query)), key=lambda one: one.id)
        listed.sort(key=lambda one: one.timestamp or START, reverse=True)
        return [(one.id, 0.0) for one in listed]
    found = {one.id: weighted_terms(one) for one in held}
    every = [passage for passages in found.values() for passage in passages]
    average = sum(length for _, length in every) / (len(every) or 1)
    asked = weights(query.text)
    frequencies = {term: sum(term in terms for terms, _ in every) for term in asked}
    worth = {term: share * idf(len(every), frequencies[term]) for term, share in asked.items()}
    scores = []
    for one in held:
        shares = [
            {
                term: worth[term] * terms[term] * (K1 + 1) / (terms[term] + K1 * (1 - B + B * length / average))
                for term in asked
                if term in terms
            }
            for terms, length in found[one.id]
        ]
        best = max(sum(share.values()) for share in shares)
        every_term = sum(max(share.get(term, 0.0) for share in shares) for term in asked)
        score = best + REST * (every_term - best)
        if score and accepted(one, query):
            scores.append((one.id, score))
    return sorted(scores, key=lambda pair: (-round(pair[1], 9), pair[0]))
