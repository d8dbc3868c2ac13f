"""``memfs inbox``: what memfs works out by itself waits there until somebody accepts or refuses it (D1, M2)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memfs.model import MemoryItem
from memfs.sessions.spool import find_place
from memfs.workspace import open_workspace
from tests.cli.conftest import Memfs, git

TEMPLATE = "service {variable} listens on port {variable}"


def remember(memfs: Memfs, *numbers: int) -> None:
    """Similar memories, each from a command of its own."""
    for number in numbers:
        assert memfs("remember", f"service {number} listens on port 80{number}").code == 0


def commits(root: Path) -> int:
    """How many commits there are."""
    return int(git(root, "rev-list", "--count", "HEAD"))


def recalled(memfs: Memfs, question: str) -> list[str]:
    """What a question brings back."""
    return [hit["content"] for hit in memfs("recall", question, "--json").json["hits"]]


@pytest.mark.parametrize("many", [3, 5])
def test_as_many_memories_as_were_asked_for(memfs: Memfs, root: Path, many: int) -> None:
    """Similar memories make as many items and commits as were asked for, and nothing made up is recalled (D1)."""
    before = commits(root)
    remember(memfs, *range(1, many + 1))

    assert len(memfs("list", "--json").json["items"]) == many
    assert commits(root) == before + many
    assert all("{variable}" not in text for text in recalled(memfs, "port 803"))
    (one,) = memfs("inbox", "--json").json["suggestions"]
    assert (one["content"], one["source"], one["count"], len(one["evidence"])) == (TEMPLATE, "pattern", many, many)
    assert len(memfs("list", "--json").json["items"]) == many
    assert commits(root) == before + many
    assert git(root, "status", "--porcelain") == ""


def test_what_is_accepted_is_one_memory_in_one_commit(memfs: Memfs, root: Path) -> None:
    """An accepted suggestion is recalled, vouched for, and in one commit; accepting it twice makes one (D1)."""
    remember(memfs, 1, 2, 3)
    shown = memfs("inbox")
    assert "3 memories: service-1-listens-on-port-801" in shown.out
    before = commits(root)

    (item,) = memfs("inbox", "accept", "service-variable", "--json").json["accepted"]

    assert commits(root) == before + 1
    assert git(root, "diff", "--name-only", "HEAD~1", "HEAD").splitlines() == [item["path"]]
    assert memfs("show", item["id"], "--json").json["trust"] == "reviewed"
    assert TEMPLATE in recalled(memfs, "service listens on port")
    assert memfs("inbox", "accept", item["id"]).code == 0
    assert commits(root) == before + 1
    assert memfs("inbox", "--json").json["suggestions"] == []
    remember(memfs, 4, 5)
    assert memfs("inbox", "--json").json["suggestions"] == []
    assert [one["data"]["occurrences"] for one in [memfs("show", item["id"], "--json").json]] == [3]


def test_what_is_refused_stays_refused(memfs: Memfs, root: Path) -> None:
    """A refusal holds, however many more memories come; accepting it takes the refusal back (D1)."""
    remember(memfs, 1, 2, 3)
    memfs("inbox")
    before = commits(root)
    assert memfs("inbox", "refuse", "service").code == 0
    remember(memfs, *range(4, 9))

    assert memfs("inbox", "--json").json["suggestions"] == []
    assert [one["content"] for one in memfs("inbox", "--refused", "--json").json["suggestions"]] == [TEMPLATE]
    assert commits(root) == before + 5
    for path in (root / ".git/memfs").glob("*/learned"):
        path.unlink()  # all memories are looked through again
    assert memfs("inbox", "--json").json["suggestions"] == []
    assert memfs("inbox", "accept", "service").code == 0
    assert TEMPLATE in recalled(memfs, "service listens on port")


def test_a_forgotten_memory_is_not_evidence(memfs: Memfs) -> None:
    """A suggestion goes with the memories that spoke for it (D1)."""
    remember(memfs, 1, 2, 3, 4)
    (one,) = memfs("inbox", "--json").json["suggestions"]

    memfs("forget", one["evidence"][0])
    (left,) = memfs("inbox", "--json").json["suggestions"]
    assert (left["count"], "service 1 listens on port 801" in json.dumps(left)) == (3, False)
    memfs("forget", one["evidence"][1])

    assert memfs("inbox", "--json").json["suggestions"] == []


def test_it_is_accepted_in_other_words(memfs: Memfs) -> None:
    """``--content`` accepts a suggestion in a person's words (D1)."""
    for name in ("user", "admin", "guest"):
        memfs("remember", f"create {name} login")
    memfs("inbox")
    (other,) = memfs("inbox", "accept", "create", "--content", "logins are created", "--json").json["accepted"]
    assert memfs("show", other["id"], "--json").json["content"] == "logins are created"


def test_what_cannot_be_understood_is_refused(memfs: Memfs) -> None:
    """Unknown suggestions and options that do not go together are refused with what would be right (D1)."""
    assert "'memfs inbox' lists what waits" in memfs("inbox", "accept", "nothing").err
    assert memfs("inbox", "accept").code == 2
    assert memfs("inbox", "refuse", "x", "--content", "y").code == 2
    assert memfs("inbox", "accept", "x", "y", "--content", "z").code == 2
    assert memfs("inbox", "refuse", "x", "--refused").code == 2
    remember(memfs, 1, 2, 3)
    memfs("inbox")
    memfs("inbox", "accept", "service")
    assert "'memfs forget" in memfs("inbox", "refuse", "service-variable").err


def test_nothing_is_learned_while_a_memory_is_stored(memfs: Memfs, root: Path) -> None:
    """However memories come in, by one command, many, an import or a review, none of them looks for patterns (D1)."""
    lines = "\n".join(json.dumps({"content": f"rotate the {name} key"}) for name in ("mail", "shop", "blog"))
    remember(memfs, 1, 2, 3)
    assert memfs("import", "-", stdin=lines).code == 0
    for name in ("x", "y", "z"):
        memfs("remember", "--review", f"We decided that the {name} deployment always needs two approvals")
    state = next((root / ".git/memfs").glob("*/journal")).parent

    assert not (state / "inbox.json").exists()
    assert not (state / "learned").exists()
    assert memfs("list", "--type", "pattern", "--json").json["items"] == []
    done = memfs("admin", "gc", "--json").json
    assert done["learned_from"] == len(memfs("list", "--json").json["items"])
    assert {one["source"] for one in memfs("inbox", "--json").json["suggestions"]} == {"pattern"}


def test_off_looks_for_nothing(memfs: Memfs, root: Path) -> None:
    """With ``learning.patterns = off`` nothing is suggested; ``write`` writes patterns in time (D1)."""
    remember(memfs, 1, 2, 3)
    assert memfs("inbox", "--json", "--set", "learning.patterns=off").json["suggestions"] == []
    before = commits(root)

    written = memfs("inbox", "--set", "learning.patterns=write")

    assert "written, as learning.patterns says" in written.err
    assert [one["content"] for one in memfs("list", "--type", "pattern", "--json").json["items"]] == [TEMPLATE]
    assert commits(root) > before
    assert git(root, "status", "--porcelain") == ""


def test_a_memory_context_asks_for_what_is_learned(memfs: Memfs, root: Path) -> None:
    """A memory context or a value below ``[memory]`` makes ``write`` the default; another setting is obeyed (M2)."""
    context = root / "ContextMemory/configuration/memory_context.yaml"
    context.write_text("metadata: {type: memory, name: shop}\n")
    remember(memfs, 1, 2, 3)
    memfs("inbox")

    assert [one["content"] for one in memfs("list", "--type", "pattern", "--json").json["items"]] == [TEMPLATE]
    for name in ("user", "admin", "guest"):
        memfs("remember", f"create {name} login")
    assert memfs("inbox", "--json", "--set", "learning.patterns=suggest").json["count"] == 1


def test_nothing_is_reported_as_written_where_it_is_suggested(memfs: Memfs, root: Path) -> None:
    """The first look at many memories suggests what it finds, says no more, and counts all of them (D1)."""
    lines = [json.dumps({"content": f"service {number} listens on port 80{number}"}) for number in range(120)]
    (root / "many.jsonl").write_text("\n".join(lines))
    assert memfs("import", str(root / "many.jsonl")).code == 0
    shown = memfs("inbox")
    assert "written" not in shown.err
    assert "120 memories: " in shown.out
    assert " and 117 more" in shown.out


def test_memories_that_contradict_each_other_are_not_a_pattern(memfs: Memfs) -> None:
    """Three answers to one question are a conflict to decide, not what they have in common (D1, P7)."""
    for seconds in (30, 60, 45):
        memfs("remember", f"The timeout of the payment gateway is {seconds} seconds")
    assert memfs("inbox", "--json").json["suggestions"] == []


def test_what_private_memory_holds_is_counted(memfs: Memfs, root: Path) -> None:
    """How much could be shared is said beside what is suggested, until it was shared or is to stay private (D1, C6)."""
    assert memfs("inbox", "--json").json["to_share"] == []
    place = find_place(str(root))
    with open_workspace(place.root, watch=False) as private:
        private.store.put(MemoryItem("Depot North closes at noon.", "semantic", id="depots"))
        private.store.put(MemoryItem("Depot South has no fence.", "semantic", id="fences"))

    shown = memfs("inbox")
    assert shown.out == ""
    assert "2 private memories could be shared; 'memfs share' lists them" in shown.err
    assert memfs("share", "depots").code == memfs("share", "fences", "--keep-private").code == 0
    assert memfs("inbox", "--json").json["to_share_count"] == 0


def test_suggestions_of_private_memory_are_decided_about_by_their_ids(memfs: Memfs, root: Path) -> None:
    """What was learned in private memory is listed as its own; accepted it stays there, refused it goes (D1, C6)."""
    remember(memfs, 1, 2, 3)
    place = find_place(str(root))
    with open_workspace(place.root, watch=False) as private:
        for number in range(1, 4):
            private.store.put(MemoryItem(f"depot {number} opens at {number} sharp", "semantic"))
            private.store.put(MemoryItem(f"ledger {number} closes in month {number}", "semantic"))
        private.learner.run()

    listed = memfs("inbox", "--json").json
    (own,) = [one["id"] for one in listed["suggestions"] if not one["id"].startswith("private:")]
    depot, ledger = sorted(one["id"] for one in listed["suggestions"] if one["id"].startswith("private:"))
    assert listed["count"] == 3
    assert f"  {depot}  from private" in memfs("inbox").out
    assert memfs("inbox", "accept", own, depot).code == 2
    assert memfs("inbox", "accept", "team:depot").code == 2
    (item,) = memfs("inbox", "accept", depot, "--json").json["accepted"]
    assert item["id"] == depot
    assert memfs("inbox", "refuse", ledger[:-4]).code == 0
    assert [one["id"] for one in memfs("inbox", "--json").json["suggestions"]] == [own]
    assert [one["id"] for one in memfs("inbox", "--refused", "--json").json["suggestions"]] == [ledger]
    assert memfs("show", depot).code == 0
    assert "depot" not in git(root, "ls-files", "--others", "--cached")
    assert git(place.root, "ls-files", item["path"]) != ""


def test_without_a_workspace_private_memory_is_named(memfs: Memfs, tmp_path: Path) -> None:
    """In a project that has private memory alone, the error says how to work in that (C6, D1)."""
    project = tmp_path / "plain"
    project.mkdir()
    assert "private memory" not in memfs("-C", str(project), "inbox").err
    place = find_place(str(project))
    assert f"for this project's private memory use -C {place.root}" in memfs("-C", str(project), "inbox").err
    assert memfs("-C", str(place.root), "inbox").code == 0
