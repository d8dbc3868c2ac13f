"""The commit with which something broke, in histories of every shape (B1)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memfs.git.repository import Repository, merge_bases
from memfs.team.bisect import FirstBadCommit, Search

ITEM = "ContextMemory/memories/semantic/a.yaml"


@dataclass
class Line:
    """A history to be: for each commit its parents, by number, and whether it changes the memory."""

    parents: list[tuple[int, ...]] = field(default_factory=list)
    touches: list[bool] = field(default_factory=list)

    def add(self, *parents: int, touches: bool = True) -> int:
        """One commit more; its number."""
        self.parents.append(parents)
        self.touches.append(touches)
        return len(self.parents) - 1

    def before(self, number: int) -> set[int]:
        """A commit and all that lead to it."""
        found = {number}
        for parent in self.parents[number]:
            found |= self.before(parent)
        return found


def made(folder: Path, line: Line) -> tuple[Repository, list[str]]:
    """The history in a repository of its own, and the ids of its commits."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number, parents in enumerate(line.parents):
        rows.append(f"commit refs/heads/c{number}\nmark :{number + 1}\ncommitter A <a@x> {1700000000 + number} +0000")
        rows.append(f"data 1\n{number % 10}")
        rows += [f"{'from' if at == 0 else 'merge'} :{parent + 1}" for at, parent in enumerate(parents)]
        text = f"content: {number}\n"
        path = ITEM if line.touches[number] else "README"
        rows.append(f"M 100644 inline {path}\ndata {len(text)}\n{text}")
    stream = "\n".join(rows).encode() + b"\n"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "fast-import", "--quiet"], input=stream, check=True)
    repository = Repository.find(folder)
    assert repository is not None
    names = [f"refs/heads/c{number}" for number in range(len(line.parents))]
    out = subprocess.run(["git", "-C", str(folder), "rev-parse", *names], check=True, capture_output=True, text=True)
    return repository, out.stdout.split()


def searched(
    repository: Repository, ids: Sequence[str], held: Sequence[bool | None], good: int = 0, bad: int = -1
) -> tuple[FirstBadCommit, list[str]]:
    """What a search finds, and which commits it tried."""
    tried: list[str] = []

    def holds(commit: str) -> bool | None:
        tried.append(commit)
        return held[ids.index(commit)]

    return Search(repository, ids[good], holds).culprit(ids[bad]), tried


@settings(max_examples=15)
@given(data=st.data())
def test_what_is_found_broke_it(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """In any history with merges: it holds at all parents that count, or it joined the one that broke it."""
    line = Line()
    line.add()
    for number in range(1, data.draw(st.integers(3, 14))):
        last = data.draw(
            st.sampled_from([number - 1, number - 1, max(0, number - 2), data.draw(st.integers(0, number - 1))])
        )
        other = data.draw(st.one_of(st.none(), st.none(), st.integers(0, number - 1)))
        line.add(last, *([other] if other is not None and other != last else []), touches=data.draw(st.booleans()))
    end = len(line.parents) - 1
    line.touches[0] = True
    reachable = sorted(line.before(end))
    good = data.draw(st.sampled_from(reachable[:-1]))
    breaker = data.draw(st.sampled_from(sorted(line.before(end) - line.before(good))))
    line.touches[good] = line.touches[breaker] = True
    came = data.draw(st.sampled_from(sorted(line.before(good))))  # with this one it began to hold
    line.touches[came] = True
    held = [came in line.before(one) and breaker not in line.before(one) for one in range(len(line.parents))]

    repository, ids = made(tmp_path_factory.mktemp("line") / "w", line)
    found, tried = searched(repository, ids, held, good, end)

    at = ids.index(found.commit)
    assert not held[at]
    assert at in line.before(end)
    for parent in line.parents[at]:
        bases = merge_bases(repository, ids[good], ids[parent])
        assert held[parent] or not all(held[ids.index(base)] for base in bases)
    assert at == breaker or (len(line.parents[at]) > 1 and breaker in line.before(at))
    assert len(tried) == len(set(tried))
    assert not found.or_earlier


def test_few_of_many_are_tried(tmp_path: Path) -> None:
    """Of 200 commits in a row some eight are tried, and those that left the memory alone are none of them."""
    line = Line()
    for number in range(400):
        line.add(*([number - 1] if number else []), touches=number % 2 == 0)
    repository, ids = made(tmp_path / "w", line)
    held = [number < 322 for number in range(400)]
    found = Search(repository, ids[0], lambda one: held[ids.index(one)]).culprit(ids[-1])
    assert found.commit == ids[322]
    assert found.steps <= 10


def test_it_finds_what_git_bisect_finds(tmp_path: Path, git: Callable[..., str]) -> None:
    """Two lines that were merged, broken on one of them: the same commit that git's own search names."""
    line = Line()
    line.add()
    line.add(0)
    left = [line.add(1)]
    right = [line.add(1)]
    for _ in range(6):
        left.append(line.add(left[-1]))
        right.append(line.add(right[-1]))
    top = line.add(line.add(left[-1], right[-1]))
    for breaker in (left[0], left[5], right[3], top - 1, top):
        held = [breaker not in line.before(one) for one in range(len(line.parents))]
        repository, ids = made(tmp_path / str(breaker), line)
        found, _ = searched(repository, ids, held)
        bad = " ".join(ids[number] for number, one in enumerate(held) if not one)
        git(tmp_path / str(breaker), "checkout", "-q", f"c{top}")
        git(tmp_path / str(breaker), "bisect", "start", ids[-1], ids[0])
        script = tmp_path / f"{breaker}.sh"
        script.write_text(f'for one in {bad}; do [ "$(git rev-parse HEAD)" = $one ] && exit 1; done; exit 0')
        output = git(tmp_path / str(breaker), "bisect", "run", "sh", str(script))
        assert f"{ids[breaker]} is the first bad commit" in output
        assert found.commit == ids[breaker]


def test_a_line_that_never_had_it_broke_nothing(tmp_path: Path) -> None:
    """Where a line left before there was anything to break, it is the merge that broke it."""
    line = Line()
    old = line.add()
    side = line.add(line.add(old))
    good = line.add(old)
    merge = line.add(line.add(good), side)
    line.add(merge)
    held = [number in (good, good + 1) for number in range(len(line.parents))]
    repository, ids = made(tmp_path / "w", line)
    found, _ = searched(repository, ids, held, good)
    assert found.commit == ids[merge]


def test_commits_that_cannot_be_read_are_passed_over_and_named(tmp_path: Path) -> None:
    """One in the middle of the way does not matter; one right before what is found may have done it."""
    line = Line()
    for number in range(20):
        line.add(*([number - 1] if number else []))
    repository, ids = made(tmp_path / "w", line)
    held: list[bool | None] = [number < 13 for number in range(20)]
    held[9] = held[10] = held[5] = None
    found, _ = searched(repository, ids, held)
    assert (found.commit, found.or_earlier) == (ids[13], ())
    held[12] = held[11] = None
    found, _ = searched(repository, ids, held)
    assert (found.commit, set(found.or_earlier)) == (ids[13], set(ids[9:13]))


def test_what_was_fixed_in_between_is_seen(tmp_path: Path) -> None:
    """Broken, fixed, broken again: what is named has a parent at which it held, whichever of the two it is."""
    line = Line()
    for number in range(30):
        line.add(*([number - 1] if number else []))
    repository, ids = made(tmp_path / "w", line)
    held = [number < 4 or 7 <= number < 21 for number in range(30)]
    found, _ = searched(repository, ids, held)
    at = ids.index(found.commit)
    assert held[at - 1]
    assert not held[at]


def test_what_broke_before_it_was_fixed_elsewhere_is_found(tmp_path: Path) -> None:
    """Broken, fixed on one line, carried on by another: what broke it is named, not what went on from there."""
    line = Line()
    good = line.add()
    broke = line.add(good)
    mended = line.add(broke)
    line.add(mended, line.add(broke))
    repository, ids = made(tmp_path / "r", line)
    found, _ = searched(repository, ids, [True, False, True, False, False])
    assert found.commit == ids[broke]
    repository.close()
