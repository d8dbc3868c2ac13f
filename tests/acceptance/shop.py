"""A web shop's team over some weeks: 500 things worth remembering, questions, and processes that store and ask.

Run as a program by the test, ``python shop.py store|ask|feedback|order FOLDER``: each run is a process of its own and
prints JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memfs import MemoryCoordinator

SESSION = "2026-11-20-afternoon"
PARTS = (
    "checkout", "billing", "search", "inventory", "shipping", "login", "catalogue", "ratings", "newsletter",
    "refunds", "cart", "pricing", "vouchers", "invoicing", "warehouse", "returns", "tracking", "wishlist",
    "recommendations", "support", "payments", "profiles", "notifications", "export", "analytics",
)  # fmt: skip
OWNERS = ("Amira", "Bela", "Chidi", "Dorota", "Esteban", "Farah", "Goran", "Hana", "Ines", "Jonas")
DATABASES = ("PostgreSQL", "Redis", "MongoDB", "ClickHouse", "SQLite", "DynamoDB", "Elasticsearch")
CAUSES = (
    "an expired TLS certificate",
    "a full disk on the log volume",
    "a deadlock between two migrations",
    "a clock that ran four minutes ahead",
    "a DNS record with a day of lifetime",
    "a connection pool of only five",
    "a config file saved with Windows line ends",
)
THINGS = ("address", "coupon", "basket", "discount", "thumbnail", "barcode", "receipt", "parcel")
ERRORS = ("TimeoutError", "KeyError", "BrokenPipe", "IntegrityError", "MemoryError")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday")
LIBRARIES = ("urllib2", "moment", "leftpad", "requests-oauth", "boto")

TEMPLATES: tuple[tuple[str, str], ...] = (
    ("semantic", "The {part} service is written in {language} and keeps its data in {database}."),
    ("semantic", "{owner} owns {part}; ask {owner} before changing its public interface."),
    ("episodic", "Decided to split {part} out of the monolith because its deploys blocked everybody for {n} minutes."),
    ("episodic", "The {part} outage of {date} was caused by {cause}; the fix took {n} minutes to find."),
    ("procedural", "To roll back {part}: freeze the queue, deploy the previous tag, replay {n} minutes of events."),
    ("procedural", "Run the {part} integration tests with `make test-{part}` after starting {database} in Docker."),
    ("prospective", "Need to replace the {library} client in {part} before {date}, since it is no longer maintained."),
    ("prospective", "TODO: add an alert when {part} answers slower than {n} milliseconds."),
    ("semantic", "Rate limit of {part} is {n} requests a minute for each customer."),
    (
        "episodic",
        "{owner} reported that {part} loses the {thing} when two browser tabs are open; reproduced in staging.",
    ),
    ("semantic", "Failed calls from {part} to {other} are retried three times, then parked in the dead letter queue."),
    ("procedural", "When {part} raises {error}, clear its {thing} cache and restart one instance at a time."),
    ("semantic", "Customers with more than {n} open orders see {part} in a reduced mode; this is on purpose."),
    ("working", "Looking into why {part} logs {error} at night; suspect the nightly {thing} job."),
    ("working", "Next for {part}: compare the {database} query plan before and after the index on {thing}."),
    ("episodic", "Load test of {part}: {n} requests a second at a p95 of 180 ms with four instances."),
    ("semantic", "Feature flag {part}-preview is switched on for staff only until {date}."),
    ("semantic", "{owner} prefers small pull requests in {part}, with one migration each."),
    ("episodic", "Moved {part} to {database} because the old cluster lost writes whenever {other} failed over."),
    ("procedural", "Database migrations of {part} go out on {day} mornings, never together with a release."),
)
QUESTIONS: tuple[tuple[int, str], ...] = (
    (0, "which language is the {part} service written in?"),
    (3, "what caused the {part} outage?"),
    (4, "how do I roll back {part}?"),
    (8, "what is the rate limit of {part}?"),
    (19, "when may {part} migrations go out?"),
)
TRIVIAL = ("Hi there", "ok", "thanks!", "Thank you so much", "...", "👍", "yes", "Good morning")
CHANGED = "Rate limit of checkout is 9999 requests a minute for each customer."
AMBIGUOUS = "which outage was caused by a deadlock between two migrations?"
TOKENS = 120


@dataclass(frozen=True)
class Draft:
    """One thing to remember."""

    type: str
    content: str


def drafts() -> Iterator[Draft]:
    """The 500, as they come up: matter by matter, each in every part of the shop."""
    for row, (kind, text) in enumerate(TEMPLATES):
        for number, part in enumerate(PARTS):
            yield Draft(kind, text.format(**_facts(row, number, part)))


def _facts(row: int, number: int, part: str) -> dict[str, Any]:
    turn = number + row
    return {
        "part": part,
        "other": PARTS[(number + 7) % len(PARTS)],
        "owner": OWNERS[number % len(OWNERS)],
        "language": ("Python", "Go", "Rust", "Kotlin")[number % 4],
        "database": DATABASES[turn % len(DATABASES)],
        "cause": CAUSES[number % len(CAUSES)],
        "thing": THINGS[turn % len(THINGS)],
        "error": ERRORS[turn % len(ERRORS)],
        "library": LIBRARIES[number % len(LIBRARIES)],
        "day": DAYS[number % len(DAYS)],
        "date": f"2026-{1 + turn % 12:02}-{1 + number:02}",
        "n": 17 + 13 * number + row,
    }


def questions() -> Iterator[tuple[str, str]]:
    """Questions, each with the text that answers it."""
    texts = [draft.content for draft in drafts()]
    for row, words in QUESTIONS:
        for number, part in list(enumerate(PARTS))[::2]:
            yield words.format(part=part), texts[row * len(PARTS) + number]


# -- processes ----------------------------------------------------------------------------------------------------
def store(folder: Path) -> dict[str, Any]:
    """Store everything, then what is trivial, what was said before, and what says otherwise."""
    remember = {"metadata": {"session_id": SESSION}, "context": {"project": "shop"}}
    with MemoryCoordinator(folder) as coordinator:
        results = [coordinator.store(draft.content, draft.type, **remember) for draft in drafts()]
        stored = [draft for draft in drafts() if draft.type != "working"][:: len(PARTS)]
        again = [coordinator.store(draft.content.upper(), draft.type, **remember) for draft in stored]
        changed = coordinator.store(CHANGED, "semantic", **remember)
        return {
            "ids": [result.memory_id for result in results],
            "refused": [result.reason for result in results if not result.stored or result.merged_into],
            "trivial": [coordinator.store(text, "working").reason for text in TRIVIAL],
            "merged": [result.merged_into for result in again],
            "contradicts": list(changed.contradicts),
        }


def ask(folder: Path) -> dict[str, Any]:
    """Ask everything, and look at filters and budgets."""
    with MemoryCoordinator(folder) as coordinator:
        places = [_place(coordinator, question, answer) for question, answer in questions()]
        some = coordinator.retrieve("checkout", memory_types=["procedural"], limit=50)
        short = coordinator.retrieve("billing outage rollback tests", limit=10, max_tokens=TOKENS)
        many = coordinator.batch_retrieve([question for question, _ in questions()][:5], limit=3)
        return {
            "places": places,
            "types": sorted({memory.type for memory in some}),
            "tokens": sum(memory.token_count for memory in short),
            "short": len(short),
            "batch": [len(found) for found in many.values()],
            "by_type": dict(coordinator.stats().by_type),
        }


def _place(coordinator: MemoryCoordinator, question: str, answer: str) -> int:
    """The rank of the answer, 1 for the first; 0 for nowhere among ten."""
    found = [memory.content for memory in coordinator.retrieve(question, limit=10)]
    return found.index(answer) + 1 if answer in found else 0


def order(folder: Path) -> dict[str, Any]:
    """Which memories answer a question that several could."""
    with MemoryCoordinator(folder) as coordinator:
        return {"order": _order(coordinator)}


def _order(coordinator: MemoryCoordinator) -> list[str]:
    return [memory.id for memory in coordinator.retrieve(AMBIGUOUS, ["episodic"], limit=4)]


def feedback(folder: Path) -> dict[str, Any]:
    """The last answer was the useful one, and the first was not."""
    with MemoryCoordinator(folder) as coordinator:
        before = _order(coordinator)
        first, *_, last = before
        give = coordinator.workspace.feedback.give
        worse = [give(first, False, "it was another outage").importance for _ in range(2)]
        better = [give(last, True, "this one it was").importance for _ in range(2)]
        return {"order": before, "worse": worse, "better": better}


COMMANDS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "store": store,
    "ask": ask,
    "feedback": feedback,
    "order": order,
}

if __name__ == "__main__":
    print(json.dumps(COMMANDS[sys.argv[1]](Path(sys.argv[2]))))
