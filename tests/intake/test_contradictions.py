"""Contradictions: two texts that cannot both hold, and pairs that only look like it."""

from __future__ import annotations

import pytest

from memfs.recall.versions import contradiction, is_personal

OPPOSED = [
    ("The timeout is 30 seconds", "The timeout is 60 seconds"),
    ("Use tabs", "Do not use tabs"),
    ("Never commit to main", "Commit to main"),
    ("We no longer use Redis", "We use Redis"),
    ("Decided to use PostgreSQL for transactions", "Decided to use MySQL for transactions"),
    ("Use PostgreSQL for transactions", "Decided to use MySQL for transactions"),
    ("Feature flags are enabled in production", "Feature flags are disabled in production"),
    ("Prefer tabs over spaces", "Prefer spaces over tabs"),
    ("Use tabs, not spaces", "Use spaces, not tabs"),
    ("The API server listens on port 8443", "The API server listens on port 9443"),
    ("Ada likes mushrooms", "Ada dislikes mushrooms"),
    ("The database is PostgreSQL", "The database is MySQL"),
    ("Bob lives in Lisbon", "Bob lives in Porto"),
    ("The on-call rotation changes every Monday", "The on-call rotation changes every Tuesday"),
    ("Tests must not touch the network", "Tests may touch the network"),
    ("The service is written in Go", "The service is written in Rust"),
    ("max_connections = 100", "max_connections = 200"),
    ("Python 3.11 is the minimum version", "Python 3.12 is the minimum version"),
    ("The maximum upload size is 25 MB.", "The maximum upload size is 50 MB"),
    ("Ada is not allergic to peanuts", "Ada is allergic to peanuts"),
    ("The cache is public", "the cache is private"),
    ("The deploy job doesn't need approval", "The deploy job needs approval"),
    ("Retries: 3", "Retries: 5"),
    ("Always squash commits", "Never squash commits"),
    ("The billing service is owned by Alice", "The billing service is owned by Bob"),
    ("Invoices are stored in S3", "Invoices are stored in Postgres"),
    ("Release day is Tuesday", "Release day is Thursday"),
    ("Default branch is main", "Default branch is develop"),
    ("Use UTC for dates", "Use CET for dates"),
    ("API keys are rotated every 30 days", "API keys are rotated every 90 days"),
]
COMPATIBLE = [
    ("Task 17 is done", "Task 18 is done"),
    ("Fixed 3 bugs in the parser", "Fixed 5 bugs in the parser"),
    ("Deployed version 2.1 to staging", "Deployed version 2.2 to staging"),
    ("We use Python", "We use Rust"),
    ("The database is slow", "The database is PostgreSQL"),
    ("Ada likes Python", "Ada likes Rust"),
    ("The build does not fail on Windows", "The build fails on Linux"),
    ("Met with Acme on Monday", "Met with Acme on Tuesday"),
    ("create user login", "create admin login"),
    ("Bob lives in Lisbon", "Carol lives in Lisbon"),
    ("Alice owns the billing service", "Alice owns the search service"),
    ("Invoices are immutable", "Invoices are archived"),
    ("Use pytest for unit tests", "Use pytest for integration tests"),
    ("The timeout is 30 seconds", "The timeout is configurable"),
    ("Port 8080 is used by the proxy", "Port 8081 is used by the metrics"),
    ("Added retries to the S3 client", "Added retries to the SQS client"),
    ("The cat is black", "The dog is black"),
    ("I love bowling", "I love bowling!"),
    ("I walked every 2 days", "I walked every 3 days"),
    ("Use tabs", "Use tabs"),
    ("Supports Python 3.11", "Supports Python 3.12"),
    ("The office is in Lisbon", "The office has 30 desks"),
    ("Test 3 fails on CI", "Test 4 fails on CI"),
    ("User 12 prefers dark mode", "User 13 prefers light mode"),
    ("Ran the load test with 100 users", "Ran the load test with 200 users"),
    ("Do not retry a payment without an idempotency key", "Retry a payment with an idempotency key"),
    ("Worker 1 is idle", "Worker 2 is idle"),
    ("The staging API runs on port 80", "The production API runs on port 8080"),
    ("Bart is happy", "Bart is sad"),
    ("Customer 5 uses the old plan", "Customer 6 uses the old plan"),
    ("Ada works with Bob", "Ada works with Carol"),
    ("The server is in Paris", "The server is Nginx"),
    ("We had 3 outages in May", "We had 5 outages in June"),
    ("The standup starts at 9", "The retro starts at 9"),
    ("Redis is used as a cache", "Redis is a supporting character in the novel"),
    ("The timeout is 5 seconds in staging", "The timeout is 5 seconds in production"),
    ("If the cache is enabled, restart the worker", "If the cache is disabled, restart the worker"),
]


@pytest.mark.parametrize(("one", "other"), OPPOSED)
def test_what_cannot_both_hold_is_found(one: str, other: str) -> None:
    """A denial, another value of the same thing, or a preference turned round is a contradiction, both ways."""
    assert contradiction(one, other)
    assert contradiction(other, one)


@pytest.mark.parametrize(("one", "other"), COMPATIBLE)
def test_what_may_both_hold_is_left_alone(one: str, other: str) -> None:
    """Two events, two things, two of several: no contradiction, however alike the words are."""
    assert (contradiction(one, other), contradiction(other, one)) == ("", "")


def test_a_reason_names_both_values() -> None:
    """What is reported can be understood without the two texts."""
    assert contradiction("The timeout is 30 s", "The timeout is 60 s") == "they disagree: 30 and 60"
    assert contradiction("Use tabs", "Don't use tabs") == "one denies what the other says"
    assert contradiction("Prefer tabs over spaces", "Prefer spaces over tabs") == "one reverses what the other prefers"


def test_one_sentence_of_many_is_enough() -> None:
    """Longer texts are compared sentence by sentence."""
    one = "The gateway is new. Its timeout is 30 seconds.\nAda owns it."
    other = "We looked at the gateway. Its timeout is 90 seconds."
    assert contradiction(one, other) == "they disagree: 30 and 90"


def test_no_text_contradicts_itself_or_nothing() -> None:
    """The same text, an empty one, or one without words is compared without an answer."""
    for text in ("", "?!", "Use tabs", "x" * 9_000, "no " * 3_000, "a. " * 3_000):
        assert contradiction(text, text) == ""
        assert contradiction(text, "Use tabs") == ""


def test_whose_words_they_are_can_matter() -> None:
    """What somebody says of himself is distinguished from what holds for all."""
    assert is_personal("I live in Lisbon")
    assert not is_personal("The service lives in Lisbon")
