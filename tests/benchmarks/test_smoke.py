"""The benchmark runs from end to end, and judges by its budgets."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import corpus, phases, report
from benchmarks.rows import FILTERED, GROWTH, IMPORT, INTAKE, NOTHING_MATCHES, PUT, Row, growth, limits

CHECKOUT = Path(__file__).parent.parent.parent


def bench(folder: Path, *arguments: str) -> str:
    """Run the benchmark as a person would, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--folder", str(folder), *arguments],
        check=False,
        cwd=CHECKOUT,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_tiny_run_measures_what_was_asked_and_leaves_nothing(tmp_path: Path) -> None:
    """Each chosen part prints its rows beside their yardsticks; the folder is empty afterwards."""
    printed = bench(
        tmp_path, "--sizes", "40", "--engines", "sqlite", "--only", "put,recall,commit,catch-up,intake,delivery"
    )
    for name in (PUT, FILTERED, INTAKE, NOTHING_MATCHES, "commit, window of 50", "catch-up, every file changed"):
        assert name in printed
    assert "x write+fsync+rename" in printed
    assert "budgets kept" in printed
    assert str(tmp_path) not in printed
    assert list(tmp_path.iterdir()) == []


def test_texts_are_the_same_for_the_same_seed() -> None:
    """A corpus depends on its seed and its size alone, and each question has words of a memory."""
    one, same, other = corpus.read(50, 1), corpus.read(50, 1), corpus.read(50, 2)
    assert one == same
    assert one.digest != other.digest
    words = corpus.questions(one.texts, 1)[0].words.split()
    assert any(all(word in text.content.lower() for word in words) for text in one.texts)


@pytest.mark.parametrize(("value", "verdict"), [(4.0, "ok"), (6.0, "missed")])
def test_a_row_is_judged_by_its_budget(value: float, verdict: str) -> None:
    """A filtered recall at 10,000 items has 5 ms, on either stored engine; the memory engine promises nothing."""
    row = Row(part="recall", name=FILTERED, size=10_000, engine="whoosh", value=value, p95=9.0)
    assert report.cells(row)[-1] == verdict
    promised = Row(part="recall", name=FILTERED, size=10_000, engine="memory", value=value)
    assert limits(promised) == []


def test_a_rate_below_its_budget_is_missed() -> None:
    """A rate must be at least its budget, a time at most."""
    row = Row(part="import", name=IMPORT, size=10_000, engine="whoosh", value=500.0, unit="items/s")
    assert [limit.used(row) for limit in limits(row)] == [2.0]


def test_growth_compares_the_largest_size_with_the_smallest() -> None:
    """The growth of a put is that of its ratio to the floor, so that a busy hour does not count."""
    rows = [Row(part="put", name=PUT, size=n, engine="sqlite", value=v, floor=1.0) for n, v in ((10, 2.0), (90, 5.0))]
    (found,) = growth(rows)
    assert (found.name, found.size, found.value) == (GROWTH, 90, 2.5)


def test_results_go_between_the_marks_of_the_page(tmp_path: Path) -> None:
    """``--write`` replaces the old results and nothing else of the page."""
    page = tmp_path / "README.md"
    page.write_text((CHECKOUT / "benchmarks" / "README.md").read_text(encoding="utf-8"), encoding="utf-8")
    row = Row(part="put", name=PUT, size=1_000, engine="sqlite", value=30.0, floor=1.0, yardstick="bare")
    report.write(page, report.markdown([row], [("date", "today")]))
    first = page.read_text(encoding="utf-8")
    report.write(page, report.markdown([row], [("date", "today")]))
    assert page.read_text(encoding="utf-8") == first
    assert "**missed**" in first
    assert first.startswith("# Benchmarks")
    assert first.count("### 1,000 items") == 1


@pytest.mark.parametrize("module", phases.TIMED)
def test_the_functions_with_a_clock_around_them_are_there(module: str) -> None:
    """The picture of where the time goes names functions of the product: each is the module's, or its class's, own."""
    there = import_module(module)
    for owner, name, _ in phases.TIMED[module]:
        assert name in vars(getattr(there, owner) if owner else there)
