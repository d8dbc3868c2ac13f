"""How much of a model's context a text takes."""

from __future__ import annotations

import pytest

from memfs.model.item import count_tokens

# Counted with the vocabulary o200k_base.
SAMPLES = {
    "prose": (
        40,
        (
            "We decided to use PostgreSQL for parcels and events, because the team knows it well and transactions "
            "matter more to us than raw speed. Revisit this when one table grows beyond 200 million rows."
        ),
    ),
    "markdown": (
        59,
        (
            "## Deploying\n\n1. Run `make test` and wait for CI.\n2. Tag the release: `git tag v1.4.2`.\n3. Push; the "
            "**pipeline** does the rest.\n\n| step | who |\n|---|---|\n| approve | lead |\n"
        ),
    ),
    "python": (
        46,
        (
            "def retry(call, times=3):\n    for attempt in range(times):\n        try:\n            return call()\n"
            "        except TimeoutError as error:\n            last = error\n            time.sleep(2 ** attempt)\n"
            "    raise last\n"
        ),
    ),
    "yaml": (
        60,
        (
            "id: retry-carrier-webhooks\ntype: procedural\ntags: [webhooks, retry]\ntimestamp: 2026-02-17T14:00:00Z\n"
            "origin:\n  agent: coder\n  session: s-0412\ncontent: |\n  Retry with jitter.\n"
        ),
    ),
    "json": (
        44,
        (
            '{"id": "a1", "hits": [{"score": 15.087, "path": "ContextMemory/memories/semantic/x.yaml", '
            '"tags": ["database"]}], "partial": false}'
        ),
    ),
    "log": (
        69,
        (
            "2026-03-01T10:00:00Z ERROR [db.pool-7] connection refused: 10.0.0.12:5432 (attempt 3/5)\n"
            "2026-03-01T10:00:02Z WARN [db.pool-7] retrying in 2000 ms\n"
        ),
    ),
    "uuids": (66, "3f2b8a34-9d1c-4b7e-8f60-2a5d9c1e7b42 0e7d4c11-55aa-4f3e-9b0c-77e1f2a3b4c5"),
    "French": (
        22,
        (
            "Nous avons décidé d'utiliser la base de données pour les transactions, car les développeurs la "
            "connaissent le mieux."
        ),
    ),
    "Russian": (
        20,
        "Мы решили использовать базу данных для транзакций, потому что разработчики знают её лучше всего.",
    ),
    "Chinese": (14, "我们决定使用数据库来处理事务，因为开发人员最了解它。"),
    "emoji": (13, "Done 🎉 great 👍🏽 ok ✅ 🚀🚀"),
}
CLOSE = ("prose", "markdown", "python", "yaml", "json", "log", "uuids")


@pytest.mark.parametrize("name", SAMPLES)
def test_the_estimate_is_never_under_a_known_count(name: str) -> None:
    """What is said to fit a budget fits it (C4)."""
    known, text = SAMPLES[name]
    assert count_tokens(text) >= known


@pytest.mark.parametrize("name", CLOSE)
def test_the_estimate_is_near_for_english_and_code(name: str) -> None:
    """A budget is not wasted: at most 30 % over, and 20 % over all samples together (C4)."""
    known, text = SAMPLES[name]
    assert count_tokens(text) <= 1.3 * known
    assert sum(count_tokens(SAMPLES[each][1]) for each in CLOSE) <= 1.2 * sum(SAMPLES[each][0] for each in CLOSE)


def test_nothing_takes_nothing_and_anything_takes_something() -> None:
    """An empty text is free, a blank is not."""
    assert (count_tokens(""), count_tokens(" "), count_tokens("a")) == (0, 1, 2)


@pytest.mark.parametrize("text", ["x" * 4000, "aB3" * 2000, "{[(<>)]}" * 300, "\u2211\u222b" * 300, "\U0001f680" * 300])
def test_random_text_does_not_pass_for_one_word(text: str) -> None:
    """A key, a drawing or a row of signs cannot slip through a budget as a few words."""
    assert count_tokens(text) > len(text) / 10


def test_more_text_never_takes_less() -> None:
    """Two texts together take about what they take apart."""
    text = SAMPLES["markdown"][1]
    assert count_tokens(text) < count_tokens(text * 2) <= 2 * count_tokens(text) + 1
