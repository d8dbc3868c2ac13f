"""What is reported without being asked for: only what has to do with a message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memfs.model import MemoryItem, Query
from memfs.sessions.respond import Fit
from memfs.workspace import Workspace

ITEMS = {
    "pg": "We decided to use PostgreSQL for the orders database because of transactions.",
    "fra": "Deploys go to the Frankfurt region; the staging server is in Dublin.",
    "flaky": "test_login_expiry is flaky: it depends on the clock, freeze the time in it.",
    "tabs": "Use spaces, not tabs, in the whole code base.",
    "auth": "The session tokens live in src/auth.py; the lifetime is seven days since May.",
    "ci": "The CI needs the environment variable DATABASE_URL, otherwise the migrations fail.",
    "rate": "The payments API limits us to 100 requests a minute; retry with backoff.",
    "logo": "The logo must stay blue, marketing insists on it.",
    "rel": "Releases are cut on Thursdays, tagged vYYYY.MM.DD, by the release manager.",
    "cache": "Cache invalidation: the product catalogue is cached for ten minutes in Redis.",
    "lint": "Run ruff with the project's config before each commit.",
    "mig": "To add a column, write an Alembic migration, run it on staging, then deploy.",
    "email": "Invoices are sent by email through Postmark, templates lie in templates/mail.",
    "cust": "Customer Kestrel has a contract that forbids storing data outside the EU.",
    "perf": "The dashboard query took 40 s until we added an index on orders.created_at.",
    "ws": "The websocket server drops connections after 60 s without ping.",
    "doc": "The docs are built with mkdocs and published by the pipeline on main.",
    "tz": "All timestamps are stored in UTC; the frontend converts them to local time.",
    "mock": "Do not mock the payment gateway in integration tests, use its sandbox.",
    "rename": "The module billing was renamed to invoicing in March.",
    "node": "Node 22 is required for building the frontend assets.",
    "pwd": "Password reset links expire after one hour.",
    "team": "Ines owns the payments service, Tom the frontend.",
}
FITTING = {
    "Which database do we use for orders?": {"pg"},
    "where do we deploy the service to?": {"fra"},
    "deploy the new version to staging": {"fra", "mig"},
    "test_login_expiry fails again, have a look": {"flaky"},
    "how long do session tokens live?": {"auth"},
    "change the token lifetime in src/auth.py to one day": {"auth"},
    "CI fails in the migrations step": {"ci"},
    "the payments API answers 429 too many requests": {"rate"},
    "cut a release please": {"rel"},
    "the product catalogue shows old prices, is it cached?": {"cache"},
    "change the text of the invoice email": {"email"},
    "can we store data of Kestrel in the US?": {"cust"},
    "websocket connections drop every minute": {"ws"},
    "how are the docs published?": {"doc"},
    "timestamps in the frontend are wrong by two hours": {"tz"},
    "write an integration test for the payment gateway": {"mock"},
    "where is the billing module?": {"rename"},
    "build the frontend assets": {"node"},
    "who owns the payments service?": {"team"},
    "password reset link does not work": {"pwd"},
}
OTHERWISE = (
    "hello",
    "yes, go ahead",
    "write a haiku about spring",
    "what is the capital of France?",
    "explain how a bloom filter works",
    "refactor this function to be shorter",
    "add type hints to utils.py",
    "run the tests",
    "fix the bug",
    "why does this regex match the empty string",
    "rename the variable x to count in parser.py",
    "convert this list comprehension into a generator",
    "what time is it in Tokyo",
    "write a Dockerfile for a Go program",
    "translate the readme into German",
    "make the header sticky on mobile",
    "please commit and push",
    "undo the last change",
    "what does git rebase --onto do",
    "implement a binary search tree in Rust with insert, delete and iteration, generic over the type of the key",
)


@pytest.fixture
def fitting(opened: Callable[..., Workspace]) -> Callable[[str], set[str]]:
    """Asks what fits a message."""
    workspace = opened()
    with workspace.store.batch("what is known"):
        for name, text in ITEMS.items():
            workspace.store.put(MemoryItem(text, memory_type="knowledge", id=name))

    def ask(message: str) -> set[str]:
        fit = Fit(message, workspace.store.counted())
        return {hit.item.id for hit in fit.among(workspace.recaller.search(Query(text=message, limit=15)).hits)}

    return ask


def test_what_has_to_do_with_a_message_is_found(fitting: Callable[[str], Any]) -> None:
    """C6: of 21 memories that should come up at least 20 do, and of what comes up one in ten at most is beside it."""
    found = {message: fitting(message) for message in FITTING}
    right = sum(len(found[message] & wanted) for message, wanted in FITTING.items())
    beside = sum(len(found[message] - wanted) for message, wanted in FITTING.items())
    assert right >= 20, {message: found[message] for message in FITTING if not FITTING[message] <= found[message]}
    assert beside <= right / 10, {message: found[message] - FITTING[message] for message in FITTING}


def test_other_matters_and_small_talk_bring_up_nothing(fitting: Callable[[str], Any]) -> None:
    """C6: nothing is given that only shares everyday words with a message."""
    assert {message: fitting(message) for message in OTHERWISE if fitting(message)} == {}
