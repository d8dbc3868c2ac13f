"""Which commits come before which, and what one line of history has beyond another, as git itself says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memfs.errors import HistoryUnavailable
from memfs.format.field_merge import rising
from memfs.git.remote import without_login
from memfs.git.repository import Repository, beyond, cut_off, holds_commit, is_ancestor, merge_bases

Git = Callable[..., str]
_EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


class Net:
    """Commits by name, each made a minute after the one before."""

    def __init__(self, root: Path, git: Git) -> None:
        self.root, self.git = root, git
        self.ids: dict[str, str] = {}

    def add(self, name: str, *parents: str) -> None:
        words = [word for parent in parents for word in ("-p", self.ids[parent])]
        moment = f"2026-03-01T10:{len(self.ids):02}:00Z"
        made = self.git(
            *(self.root, "commit-tree", *words, "-m", name, _EMPTY),
            GIT_AUTHOR_DATE=moment,
            GIT_COMMITTER_DATE=moment,
        )
        self.ids[name] = made.strip()


@pytest.fixture
def net(tmp_path: Path, git: Git) -> Net:
    """Two lines that crossed: each joined what the other had then, and both went on; and a stranger."""
    Repository.create(tmp_path)
    git(tmp_path, "hash-object", "-w", "-t", "tree", "/dev/null")
    made = Net(tmp_path, git)
    made.add("root")
    made.add("a", "root")
    made.add("b", "root")
    made.add("ab", "a", "b")
    made.add("ba", "b", "a")
    made.add("end", "ab")
    made.add("stranger")
    return made


def test_where_lines_met_is_reported_newest_first(net: Net) -> None:
    """Of lines that crossed every meeting point is reported, in an order that is the same in each clone (B3)."""
    repository = Repository.find(net.root)
    assert repository is not None
    ids = net.ids
    assert merge_bases(repository, ids["end"], ids["ba"]) == (ids["b"], ids["a"])
    assert merge_bases(repository, ids["ba"], ids["end"]) == (ids["b"], ids["a"])
    assert merge_bases(repository, ids["a"], ids["end"]) == (ids["a"],)
    assert merge_bases(repository, ids["a"], ids["stranger"]) == ()
    with pytest.raises(HistoryUnavailable, match="cannot be found"):
        merge_bases(repository, ids["a"], "1" * 40)
    repository.close()


def test_of_commits_of_one_second_the_order_is_the_same_everywhere(net: Net) -> None:
    """Where lines crossed that began at one time, their meeting points come in the order of their ids (B3)."""
    repository = Repository.find(net.root)
    assert repository is not None
    moments = {"GIT_AUTHOR_DATE": "2026-03-01T11:00:00Z", "GIT_COMMITTER_DATE": "2026-03-01T11:00:00Z"}
    for turn in range(4):
        a, b = (
            net.git(net.root, "commit-tree", "-p", net.ids["root"], "-m", f"{name}{turn}", _EMPTY, **moments).strip()
            for name in "ab"
        )
        one, other = (
            net.git(net.root, "commit-tree", "-p", two[0], "-p", two[1], "-m", "x", _EMPTY).strip()
            for two in ((a, b), (b, a))
        )
        assert merge_bases(repository, one, other) == tuple(sorted((a, b)))
    repository.close()


def test_what_one_line_has_beyond_another(net: Net) -> None:
    """Commits are listed children first; what is known, with all before it, is left out (B3)."""
    repository = Repository.find(net.root)
    assert repository is not None
    ids = net.ids
    found = beyond(repository, [ids["end"]], [ids["b"]])
    assert found == [ids["end"], ids["ab"], ids["a"]]
    assert beyond(repository, [ids["end"], ids["stranger"]], [ids["end"]]) == [ids["stranger"]]
    assert beyond(repository, [ids["end"]], [ids["b"]], most=1) == [ids["end"]]
    assert [len(beyond(repository, [ids["end"]], known)) for known in ([ids["b"]], [ids["end"]], [])] == [3, 0, 5]
    assert (is_ancestor(repository, ids["a"], ids["ba"]), is_ancestor(repository, ids["ab"], ids["ba"])) == (
        True,
        False,
    )
    assert not is_ancestor(repository, "1" * 40, ids["ba"])
    assert (holds_commit(repository, ids["a"]), holds_commit(repository, "1" * 40)) == (True, False)
    repository.close()


def test_a_shallow_clone_says_where_it_is_cut_off(net: Net, tmp_path: Path) -> None:
    """A whole clone has no such place; a shallow one names the commits."""
    net.git(net.root, "update-ref", "refs/heads/line", net.ids["end"])
    net.git(tmp_path, "clone", "--quiet", "--depth=1", "--branch=line", f"file://{net.root}", str(tmp_path / "cut"))
    whole, cut = Repository.find(net.root), Repository.find(tmp_path / "cut")
    assert whole is not None
    assert cut is not None
    assert (cut_off(whole), cut_off(cut)) == (frozenset(), frozenset({net.ids["end"]}))
    whole.close()
    cut.close()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://ada:token@host/x.git", "https://host/x.git"),
        ("https://ada:to@ken @host/x.git", "https://host/x.git"),
        ("fatal: unable to access 'https://ada@host/': no", "fatal: unable to access 'https://host/': no"),
        ("https://host/a@b", "https://host/a@b"),
        ("git@host:x.git", "git@host:x.git"),
    ],
)
def test_no_password_is_shown_of_an_address(text: str, shown: str) -> None:
    """Whatever a person put before the host of an address is not printed, a password with an @ in it neither."""
    assert without_login(text) == shown


@pytest.mark.parametrize(
    ("numbers", "length"), [([], 0), ([5], 1), ([1, 2, 3], 3), ([3, 2, 1], 1), ([9, 1, 5, 2, 6, 3, 7, 4], 4)]
)
def test_the_longest_rising_run(numbers: list[int], length: int) -> None:
    """Places come in order, their numbers rise, and no longer such row can be found."""
    places = rising(numbers)
    assert len(places) == length
    assert places == sorted(places)
    assert [numbers[at] for at in places] == sorted({numbers[at] for at in places})
