"""Statements and prompts: which sentences decide, state or intend something, on a labelled set."""

from __future__ import annotations

import pytest

from memfs.sessions.extract import (
    HIGH,
    LOW,
    MEDIUM,
    facts_in,
    intention,
    priority,
    sentences,
    statement,
    statements,
)

_DECISIONS = [
    ("We decided to use Redis for the session store because Postgres was too slow.", "choice"),
    ("I went with a token bucket instead of a fixed window.", "choice"),
    ("The team agreed to freeze the API until the release.", "choice"),
    ("Decision: keep the monorepo and split only the deployment.", "choice"),
    ("We settled on semantic versioning for the plugins.", "choice"),
    ("After comparing both, I chose SQLite for the cache.", "choice"),
    ("We opted for server-side rendering on the landing page.", "choice"),
    ("I replaced the hand-written parser with PyYAML.", "change"),
    ("Switched the package manager from npm to pnpm.", "change"),
    ("We migrated the queue from RabbitMQ to NATS.", "change"),
    ("We have moved the session code into its own package.", "change"),
    ("The tooling now uses pnpm instead of npm.", "change"),
    ("We decided against caching the search results.", "rejection"),
    ("We ruled out GraphQL because of the gateway.", "rejection"),
    ("I abandoned the async rewrite since it doubled the memory use.", "rejection"),
    ("We postponed the upgrade of Django to the next quarter.", "deferral"),
]
_KNOWLEDGE = [
    ("The root cause was a missing await in `auth.py`.", "cause"),
    ("The failure was caused by a stale lock file from the previous run.", "cause"),
    ("It turned out that the proxy strips the trailing slash.", "cause"),
    ("The fix was to close the cursor before the commit.", "cause"),
    ("We learned that the staging database is reset every night.", "lesson"),
    ("Keep in mind that the fixtures share one database.", "lesson"),
    ("Never call `fork` after the threads were started.", "lesson"),
    ("Important: the migration locks the orders table for minutes.", "lesson"),
    ("The API requires an `X-Tenant` header on every call.", "constraint"),
    ("Migrations must run before the workers start.", "constraint"),
    ("The importer only accepts UTF-8 files without a BOM.", "constraint"),
    ("The worker cannot reach the metadata service from the sandbox network.", "constraint"),
    ("The retry logic lives in `src/http/retry.py`.", "location"),
    ("Feature flags are defined in config/flags.yaml of each service.", "location"),
    ("Migrations live in db/migrations/.", "location"),
    ("The project uses esbuild for the browser bundle.", "fact"),
    ("Our staging database runs on port 5433.", "fact"),
    ("The backend listens on port 8081 in development.", "fact"),
]
_NOTHING = [
    "I've fixed the failing test.",
    "All tests pass now.",
    "Let me look at the configuration first.",
    "I'll run the tests next and report back.",
    "You need to restart the server before the change is visible.",
    "Would you like me to commit this as well?",
    "Should we decide to use Redis or Postgres here?",
    "We might have decided to use Redis at some point.",
    "I think the root cause is the cache.",
    "Perhaps the problem is a race in the scheduler.",
    "We haven't decided on a name for the package yet.",
    "The problem is fixed and everything is green.",
    "The issue was resolved by the last commit.",
    "This requires your approval before I continue.",
    "I can't run the integration tests in this environment.",
    "The tests cannot be run here.",
    "I moved on to the next file after that.",
    "Here's a summary of what was changed:",
    "If you prefer tabs, I can switch to them.",
    "Let me know whether you want the other approach.",
    "I added three tests for the parser and updated the readme.",
    "The build is running at the moment.",
    "It seems the API requires a header on every call.",
    "Done! The file is saved.",
    "Running the linter shows two warnings in the module.",
    "Next, I'll decide on the best way to split this.",
    "Please choose one of the options below.",
    "It looks good to me overall.",
    "Created `src/app.py` with the new handler and its route.",
    "The user asked for a shorter version of the text.",
    "I changed `foo` to `bar` in three files.",
    "I've moved the helper to utils.py and updated the imports.",
    "I converted the file to UTF-8 and saved it.",
    "Never mind the warning in the log above.",
]


@pytest.mark.parametrize(("sentence", "sort"), _DECISIONS)
def test_a_decision_is_reported_from_the_rest(sentence: str, sort: str) -> None:
    """A sentence that states a decision is one, with its sort (C6: decision_type)."""
    found = statement(sentence)
    assert found is not None
    assert (found.decides, found.sort) == (True, sort)


@pytest.mark.parametrize(("sentence", "sort"), _KNOWLEDGE)
def test_knowledge_is_reported_from_the_rest(sentence: str, sort: str) -> None:
    """A sentence that states something that lasts is knowledge, with its category (C6)."""
    found = statement(sentence)
    assert found is not None
    assert (found.decides, found.sort) == (False, sort)


@pytest.mark.parametrize("sentence", _NOTHING)
def test_what_is_about_the_moment_is_passed_over(sentence: str) -> None:
    """Reports, offers, guesses and questions are nothing that lasts."""
    assert statement(sentence) is None


def test_code_quotes_and_tables_are_not_what_an_agent_says() -> None:
    """Only words of the agent's own count, without the marks of lists and emphasis."""
    text = (
        "## We decided to use headings as decisions\n\n> We decided to quote somebody else here.\n\n"
        "```python\n# We decided to write comments in code blocks.\n```\n\n"
        "| We decided to use tables | for this |\n\n"
        "- **We decided to use `ruff` for linting\n  and formatting.**\n"
        "1. [x] The config lives in `pyproject.toml`, e.g. under `[tool.ruff]`.\n"
    )
    assert [one.text for one in statements(text)] == [
        "We decided to use `ruff` for linting and formatting.",
        "The config lives in `pyproject.toml`, e.g. under `[tool.ruff]`.",
    ]


def test_a_long_message_gives_a_few() -> None:
    """Of one message at most five decisions and five pieces of knowledge are kept, whatever its length."""
    text = "\n".join(
        f"We decided to use tool number {n} for it.\nThe setting for {n} lives in `a/{n}.py`." for n in range(900)
    )
    found = statements(text)
    assert [one.decides for one in found].count(True) == 5
    assert len(found) == 10


_HOSTILE = ["", "\n\n", "```", "a" * 200_000, "we decided to " * 20_000, "must " * 50_000, "- " * 9_000]


@pytest.mark.parametrize("text", _HOSTILE)
def test_hostile_text_ends_at_once(text: str) -> None:
    """No text takes long, and none is more than it says (faults row 16)."""
    import time

    began = time.process_time()
    statements(text)
    intention(text)
    priority(text[:20_000])
    assert time.process_time() - began < 1.0
    assert len(sentences(text)) <= 1


@pytest.mark.parametrize(
    "text",
    [
        "TODO: write the release notes",
        "we'll add the tests later",
        "I need to call the vendor about the invoice",
        "We plan to move the docs to another host",
        "The parser needs to handle tabs",
        "todo fix the header",
    ],
)
def test_words_of_later_work_are_noticed(text: str) -> None:
    """todo, later, need to and plan to announce something to be done (C6)."""
    assert intention(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "Use Python 3.11 or later",
        "It crashed two days later",
        "There is no need to hurry",
        "You don't need to write tests for that",
        "Do I need to restart it?",
        "The translater module fails",
        "What does the plan say about caching?",
        "Explain what needs to happen before we migrate",
        "See you later",
        "Explain this:\n```\n# TODO: not mine\n```",
    ],
)
def test_the_same_words_may_mean_nothing(text: str) -> None:
    """Where nobody intends anything, nothing is to be done."""
    assert intention(text) == ""


def test_of_a_message_the_sentences_that_intend_count() -> None:
    """A prompt is not a reminder as a whole: what is done now, or corrects the agent, is none (C6)."""
    text = "No, don't use print, use the logger. And fix the bug in load() later. That is not urgent. Go on."
    assert intention(text) == "And fix the bug in load() later. That is not urgent."
    text = "Here is the log of the run. " * 30 + "We need to rotate the keys. " + "It ends here. " * 5
    assert intention(text) == "We need to rotate the keys."


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("todo: fix this asap", HIGH),
        ("This is critical, we need to fix it", HIGH),
        ("We need to fix it before the release", HIGH),
        ("P0: we need to restore the backup", HIGH),
        ("We need to tidy up some day", LOW),
        ("nice to have: we plan to add themes", LOW),
        ("not urgent, but we need to rename it", LOW),
        ("low priority todo: rename it", LOW),
        ("We need to rename it", MEDIUM),
        ("", MEDIUM),
    ],
)
def test_priority_is_reported_by_words(text: str, wanted: str) -> None:
    """Urgent words give high, words of leisure low, all else medium (C6)."""
    assert priority(text) == wanted


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (
            "Our staging database runs on port 5433. Please point the tests at it.",
            ["Our staging database runs on port 5433."],
        ),
        (
            "The importer lives in services/import/worker.py. Speed it up.",
            ["The importer lives in services/import/worker.py."],
        ),
        ("The parser cannot handle nested quotes. Fix it.", []),
        ("The button must be blue on every page of the shop.", []),
        ("Is it true that the API runs on port 80?", []),
        ("We decided to use Redis for sessions.", []),
        ("Always use Decimal for money.", []),
    ],
)
def test_what_a_person_says_of_the_work(text: str, facts: list[str]) -> None:
    """Facts in a person's prompt are kept; what it wants changed is none (C6)."""
    assert [one.text for one in facts_in(text)] == facts
