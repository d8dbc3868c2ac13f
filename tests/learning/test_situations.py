"""When a situation is like an earlier one, and when a rule applies to it (P1, P3)."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import situations as labelled
from kit.corpus import seeded
from memfs.intake.episode_item import item_of
from memfs.learning.situations import alike, asked, fit, means, plain_files, row_of, share_needed, words_of
from memfs.learning.triggers import FAILURE, TriggerTable
from memfs.model.episode import EPISODE, RULE, StateSnapshot, TriggerRow
from memfs.search.terms import generic_terms


def situation(files: str = "", context: str = "", tool: str = "") -> StateSnapshot:
    """A situation, its files separated by spaces."""
    return StateSnapshot.create(files.split(), context, tool=tool)


def episode(files: str, context: str, did: str = "", tool: str = "edit") -> TriggerRow:
    """The row of a failure."""
    return TriggerRow(
        id="one",
        path="one.yaml",
        blob="",
        sort=EPISODE,
        outcome="failure",
        tool=tool,
        files=plain_files(files.split()),
        words=words_of(context),
        deeds=words_of(did),
        context=context,
        did=did,
    )


def rule(pattern: str = "", files: str = "", tool: str = "") -> TriggerRow:
    """The row of a rule."""
    return TriggerRow(
        id="r", path="r.yaml", blob="", sort=RULE, tool=tool, files=tuple(files.split()), words=words_of(pattern)
    )


def likeness(state: StateSnapshot, row: TriggerRow) -> float:
    """How alike they are among a dozen other failures."""
    table = TriggerTable(generic_terms)
    for number, other in enumerate(labelled.failures().values()):
        table.put(row_of(item_of(other).replace(path=f"{number}.yaml"), ""))
    table.put(row)
    one = asked(state)
    return alike(one, row, {word: table.worth(word) for word in one.words}, table.worth)


def applies(state: StateSnapshot, row: TriggerRow) -> bool:
    """Whether a rule applies, each word worth the same."""
    return bool(fit(asked(state), row, lambda _: 1.0))


EARLIER = episode(
    "src/auth.py", "Let people stay logged in for a week", "Set the lifetime of the session to seven days"
)


@pytest.mark.parametrize(
    "state",
    [
        situation("src/auth.py", "Rename a helper"),
        situation("./src//auth.py", ""),
        situation("/home/ada/shop/src/auth.py", "Add two factors", "edit"),
        situation("docs/login.md src/auth.py tests/test_auth.py", "Explain it"),
        situation("", "Edit src/auth.py once more"),
        situation("", "Let people stay logged in for a month"),
        situation("", "set the lifetime of a session to one day"),
        situation("src/session.py", "Let people stay logged in for a week"),
    ],
)
def test_p1_the_same_file_or_the_same_work_comes_to_mind(state: StateSnapshot) -> None:
    """The same file with another sentence reaches the seed's threshold, and so do the same words (P1, P3)."""
    assert 0.7 <= likeness(state, EARLIER) <= 1


@pytest.mark.parametrize(
    "state",
    [
        situation("src/basket.py", "Show the number of articles"),
        situation("lib/other/auth_views.py", "Show a picture"),
        situation("", "Run the tests"),
        situation("", "Fix the bug"),
        situation("", ""),
        situation("", "?!", "edit"),
        situation("src/billing.py", "Let people download their invoices"),
    ],
)
def test_p1_another_matter_does_not_come_to_mind(state: StateSnapshot) -> None:
    """What shares neither file nor work stays below the seed's threshold (P1, P3)."""
    assert likeness(state, EARLIER) < 0.7


def test_only_a_repetition_is_wholly_alike() -> None:
    """The same words, files and tool are 1, in whatever case and spacing; everything else is less."""
    again = situation("src/auth.py", "let people  stay logged in for a WEEK", "edit")
    assert likeness(again, EARLIER) == 1
    assert likeness(situation("src/auth.py", "Let people stay logged in for a day", "edit"), EARLIER) < 1
    assert likeness(situation("", "Run the tests"), episode("", "Run the tests")) == 1


def test_a_file_name_that_every_folder_has_says_little() -> None:
    """Another ``models.py`` is not the same file; another ``ledger.py`` is nearly."""
    assert likeness(situation("blog/models.py"), episode("shop/models.py", "Add a column")) < 0.3
    assert likeness(situation("blog/ledger.py"), episode("shop/ledger.py", "Add a column")) > 0.3
    assert likeness(situation("models.py"), episode("shop/models.py", "Add a column")) < 0.7
    assert likeness(situation("ledger.py"), episode("shop/ledger.py", "Add a column")) >= 0.7


def test_one_file_of_many_says_less() -> None:
    """An episode about a hundred files is not about each of them as much as one about a single file."""
    many = episode(" ".join(f"src/part{number}.py" for number in range(100)), "Format everything")
    assert likeness(situation("src/part7.py", "Add a field"), many) < 0.7
    assert likeness(situation("src/part7.py", "Add a field"), episode("src/part7.py src/b.py", "Rename")) >= 0.7


def test_the_labelled_set_is_answered_well() -> None:
    """Of what comes to mind nearly all is right, and of what is right nearly all comes to mind (P1)."""
    table = TriggerTable(generic_terms)
    rows = {
        name: row_of(item_of(one).replace(path=f"{name}.yaml", id=name), "")
        for name, one in labelled.failures().items()
    }
    for row in rows.values():
        table.put(row)
    answers = []
    for case in labelled.cases():
        one = asked(StateSnapshot.create(case.files, case.context, tool=case.tool))
        weights = {word: table.worth(word) for word in one.words}
        answers.append((case, [name for name, row in rows.items() if alike(one, row, weights, table.worth) >= 0.7]))
    found = labelled.measured(answers)
    assert found.precision >= 0.97, found.wrong
    assert found.recall >= 0.95, found.missed


@pytest.mark.parametrize(
    ("glob", "file", "meant"),
    [
        ("src/auth.py", "src/auth.py", True),
        ("src/auth.py", "/home/ada/shop/src/auth.py", True),
        ("src/auth.py", "auth.py", True),
        ("src/models.py", "models.py", False),
        ("*.py", "src/deep/auth.py", True),
        ("*.py", "src/auth.pyc", False),
        ("src/**/*.py", "src/auth.py", True),
        ("src/**/*.py", "src/a/b/auth.py", True),
        ("src/**/*.py", "lib/a.py", False),
        ("src/*/a?.py", "src/x/ab.py", True),
        ("src/*/a?.py", "src/x/y/ab.py", False),
        ("src/**", "src/a/b", True),
        ("src/**", "lib/a/b", False),
        ("pages/[id].tsx", "app/pages/[id].tsx", True),
        ("pages/[id].tsx", "app/pages/x.tsx", False),
        ("src/[ab].py", "lib/src/b.py", True),
        ("db/migrations", "shop/db/migrations/0001/up.sql", True),
        ("test_*_model?.p*", "tests/test_shop_models.py", True),
        ("**", "anything/at/all", True),
        ("__init__.py", "src/__init__.py", False),
    ],
)
def test_globs_mean_what_people_expect(glob: str, file: str, meant: bool) -> None:
    """Globs are those of scopes, wherever in a path they begin; a name with brackets is meant as it is written."""
    assert bool(means(glob, file)) is meant


def test_hostile_globs_and_texts_end() -> None:
    """Globs that make backtracking explode, and texts without end, are done with at once (L7)."""
    assert not means("*a" * 250 + "b", "a" * 255)
    assert not means("**/a/" * 100 + "b", "a/" * 200 + "a")
    assert not means("*?a?" * 100 + "b", "a" * 255)
    one = asked(StateSnapshot.create(["a/" * 5_000] * 3, "../" * 100_000 + "a." * 100_000))
    assert len(one.files) < 100


def test_p3_rules_apply_by_files_words_and_tool() -> None:
    """A rule with files needs one of them at hand, one without needs its words, and another tool rules it out (P3)."""
    migration = rule("run a migration on staging", "migrations/*.sql", "bash")
    assert applies(situation("migrations/0001.sql", "Run the migration", "bash"), migration)
    assert applies(situation("", "run this migration on staging now"), migration)
    assert not applies(situation("migrations/0001.sql", "Run the migration", "edit"), migration)
    assert not applies(situation("src/a.py", "run a migration on staging", "bash"), migration)
    assert not applies(situation("migrations/0001.sql", "Explain the colours"), migration)
    assert applies(situation("src/auth.py", "Whatever"), rule("session lifetime", "src/auth.py"))
    assert applies(situation("src/a.py", "x"), rule(files="src/**"))
    assert applies(situation("", "x", "bash"), rule(tool="bash"))
    assert not applies(situation("", "x", "bash"), rule())
    assert not applies(situation("", "Deploy the documentation"), rule("deploy the shop to production on friday"))


@settings(max_examples=60)
@given(st.lists(st.text(max_size=30), max_size=4), st.text(max_size=80), st.text(max_size=8), st.text(max_size=60))
def test_any_situation_is_compared_with_any_other(files: list[str], context: str, tool: str, did: str) -> None:
    """Whatever is in them, a likeness is a share, and a situation in words is wholly like itself."""
    state = StateSnapshot.create(files, context, tool=tool)
    row = episode("", "", tool=tool)._replace(
        files=plain_files(state.files), words=words_of(context), deeds=words_of(did), context=context, did=did
    )
    assert 0 <= likeness(state, EARLIER) <= 1
    found = likeness(state, row)
    assert 0 <= found <= 1
    if any(word.isascii() and word.isalpha() for word in context.split()):
        assert found == 1


@pytest.mark.parametrize("threshold", [0.9, 0.7, 0.5, 0.36])
def test_nothing_that_is_alike_is_overlooked(threshold: float) -> None:
    """The table's candidates hold every row that is alike enough, as looking at each row in turn finds them."""
    rng = seeded(7)
    vocabulary = [
        f"{a}{b}" for a in ("kra", "wal", "ott", "bea", "lyn", "run", "fix") for b in ("ken", "rus", "er", "x")
    ]

    def some(most: int) -> str:
        return " ".join(rng.choice(vocabulary[: rng.choice((5, 12, 28))]) for _ in range(rng.randint(0, most)))

    def files() -> str:
        return " ".join(f"{rng.choice('ab')}/{rng.choice('cd')}/{rng.choice('efgh')}.py" for _ in range(2))

    table = TriggerTable(generic_terms)
    for number in range(300):
        table.put(episode(files() if number % 3 else "", some(7), some(7))._replace(path=f"{number}.yaml"))
    looked_for = 0
    for _ in range(60):
        one = asked(situation(rng.choice(("", files())), some(8), "edit"))
        weights = {word: table.worth(word) for word in one.words}
        every = {row.path for row in table if alike(one, row, weights, table.worth) >= threshold}
        near = table.candidates(FAILURE, one.by_name, weights, share_needed(threshold))
        found = {row.path for row in near if alike(one, row, weights, table.worth, threshold) >= threshold}
        assert found == every
        looked_for += len(every)
    assert looked_for > 50


@pytest.mark.parametrize("seed", range(4))
def test_no_rule_that_applies_is_overlooked(seed: int) -> None:
    """The rules that the table gives hold every one that applies."""
    rng = seeded(seed)
    vocabulary = ["kraken", "walrus", "otter", "beaver", "lynx", "run", "fix", "deploy"]
    globs = ["src/a.py", "*.py", "src/**", "docs/*.md", "src/?.py", "**/b.*", "x/y/c.tar.gz", "*"]
    table = TriggerTable(generic_terms)
    for number in range(200):
        made = rule(
            " ".join(rng.sample(vocabulary, rng.randint(0, 4))),
            " ".join(rng.sample(globs, rng.choice((0, 0, 1, 2)))),
            rng.choice(("", "", "bash")),
        )
        table.put(made._replace(path=f"{number}.yaml"))
    applying = 0
    for _ in range(60):
        named = " ".join(
            rng.sample(["src/a.py", "/w/src/b.py", "docs/x.md", "c.tar.gz", "lib/q.rs"], rng.randint(0, 2))
        )
        one = asked(situation(named, " ".join(rng.sample(vocabulary, 3)), rng.choice(("", "bash", "edit"))))
        every = {row.path for row in table if fit(one, row, table.worth)}
        assert every <= {row.path for row in table.applying(one.files, one.words)}
        applying += len(every)
    assert applying > 100


def test_a_rare_word_counts_for_more() -> None:
    """What every episode is about says less than what few are."""
    table = TriggerTable(generic_terms)
    for number in range(50):
        row = row_of(item_of(labelled.failures()["cors"]), "")
        table.put(row._replace(path=f"{number}.yaml", words=("deploy", "shop") if number else ("deploy", "kraken")))
    assert table.worth("kraken") > 2 * table.worth("deploy")
    assert table.worth("run") < table.worth("walrus") / 3
    assert math.isfinite(table.worth("anything"))


def test_the_labelled_episodes_are_in_the_past() -> None:
    """So that age can be tried on them."""
    assert all(timedelta() < labelled.NOW - one.timestamp < timedelta(days=60) for one in labelled.failures().values())
