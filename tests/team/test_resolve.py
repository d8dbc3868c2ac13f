"""What a merge could not decide, listed and ended: without the driver, in items, in documents (faults row 43; B3)."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from twoclones import ITEM, RESULT, TEXT, Clone, Done, clones, joining, memfs, pristine

from memfs import open_workspace
from memfs.errors import GitBusy
from memfs.format.text import has_markers
from memfs.model import MemoryItem
from memfs.team import resolve

__all__ = ["clones", "joining", "memfs", "pristine"]

Memfs = Callable[..., Done]
Two = tuple[Clone, Clone]


def apart(two: Two) -> Two:
    """Both sides change the same line, and each another field; Bo's merge of Ada's stops with markers."""
    ada, bo = two
    ada.edit("Frankfurt", "Vienna")
    ada.edit("- ops", "- ops\n- ada")
    bo.edit("Frankfurt", "Linz")
    bo.edit("importance: 2", "importance: 4")
    bo.pull(ada, code=1)
    return ada, bo


# -- without the driver -------------------------------------------------------------------------------------------
def test_markers_are_survived_and_resolve_finishes(clones: Two, memfs: Memfs) -> None:
    """Without the driver the last good version is served, resolve joins by the same rules, git commit ends it (43)."""
    _, bo = apart(clones)
    assert has_markers(bo.read().encode())
    answer = memfs(bo, "recall", "deploy target", "--json").json
    assert "Linz" in answer["hits"][0]["content"]
    assert "merge conflict markers" in memfs(bo, "status").err + memfs(bo, "status").out
    listed = memfs(bo, "team", "conflicts", "--json").json
    assert [one["path"] for one in listed["open"]] == [ITEM]
    assert listed["situation"] == "MERGE_HEAD"
    done = memfs(bo, "team", "conflicts", "resolve", "--all")
    assert done.code == 0
    assert f"joined  {ITEM}" in done.out
    assert "run 'git commit' to finish" in done.err
    text = bo.read()
    assert "- ops\n- ada\n" in text
    assert "importance: 4" in text
    assert "kept: Deploy to" in text
    assert bo.git("status", "--porcelain").out == f"M  {ITEM}\n"
    bo.git("commit", "--quiet", "--no-edit")
    assert bo.clean()
    assert memfs(bo, "team", "conflicts", "--json").json["waiting"] == 1
    assert memfs(bo, "team", "conflicts", "resolve", "deploy", "--keep", "kept").code == 0
    assert memfs(bo, "team", "conflicts", "--json").json["waiting"] == 0
    assert bo.clean()
    assert [row["code"] for row in memfs(bo, "check", "--json").json["problems"]] == ["MergeDriverMissing"]


def test_resolve_gives_what_the_driver_gives(clones: Two, memfs: Memfs) -> None:
    """The rules are the same: the outcome is the driver's, to the byte (B3)."""
    ada, bo = apart(clones)
    memfs(bo, "team", "conflicts", "resolve", "--all")
    ada.install()
    ada.git("fetch", "--quiet", str(bo.root), "main")
    ada.git("merge", "--quiet", "--no-edit", "FETCH_HEAD")
    assert ada.read() == bo.read()


@pytest.mark.parametrize(("side", "name"), [("ours", "Linz"), ("theirs", "Vienna")])
def test_one_version_may_be_taken_whole(clones: Two, memfs: Memfs, side: str, name: str) -> None:
    """A person may take one version, also over what was made by hand; that is set aside."""
    _, bo = apart(clones)
    before = "content: by hand\ncreated: '2026-03-01T10:00:00Z'\n"
    bo.write(before)
    assert memfs(bo, "team", "conflicts", "resolve", "deploy", "--keep", side).code == 0
    assert f"Deploy to {name}" in bo.read()
    assert "conflicts" not in bo.read()
    bo.git("commit", "--quiet", "--no-edit")
    assert before in [path.read_text().partition("\n")[2] for path in bo.root.glob(".git/memfs/*/recovered/merge-*")]


@pytest.mark.parametrize("by_us", [True, False])
@pytest.mark.parametrize("side", ["", "removed", "edited"])
def test_removed_here_and_edited_there(clones: Two, memfs: Memfs, by_us: bool, side: str) -> None:
    """The edit stays with a record, unless somebody says otherwise; git never asks the driver here (B3)."""
    ada, bo = clones
    remover, editor = (bo, ada) if by_us else (ada, bo)
    remover.git("rm", "--quiet", ITEM)
    remover.git("commit", "--quiet", "--message", "Gone")
    editor.edit("Frankfurt", "Vienna")
    bo.pull(ada, code=1)
    assert "removed it" in memfs(bo, "team", "conflicts").out
    options = [] if not side else ["--keep", "ours" if by_us == (side == "removed") else "theirs"]
    resolved = memfs(bo, "team", "conflicts", "resolve", "deploy", *options)
    assert resolved.code == 0
    bo.git("commit", "--quiet", "--no-edit")
    assert bo.clean()
    assert (bo.root / ITEM).exists() == (side != "removed")
    if not side:
        happened = "we removed it, they changed it" if by_us else "they removed it, we changed it"
        assert f"the item as a whole: {happened}; the edited version stays" in resolved.out
        assert "edited on one side of a merge, deleted on the other" in memfs(bo, "list").out
        shown = memfs(bo, "team", "conflicts", "--json").json["items"][0]["conflicts"][0]
        assert (shown["field"], shown["kept"], shown["lost"]) == ("", "edited", "deleted")
        assert memfs(bo, "team", "conflicts", "resolve", "deploy", "--keep", "lost").code == 0
        assert not (bo.root / ITEM).exists()
        assert bo.clean()


def test_an_item_that_one_side_moved_is_one_item(clones: Two, memfs: Memfs) -> None:
    """Moved on one side and edited on the other, it is in its new place alone, with both (B3)."""
    ada, bo = clones
    moved = ITEM.replace("2026-03", "elsewhere")
    (ada.root / moved).parent.mkdir(parents=True)
    text = "content: wholly other words stand here, so that git sees no rename\ncreated: '2026-03-01T10:00:00Z'\n"
    ada.git("mv", ITEM, moved)
    ada.write(text, moved)
    ada.commit()
    bo.edit("importance: 2", "importance: 4")
    bo.pull(ada, code=1)
    assert memfs(bo, "team", "conflicts", "resolve", "deploy").code == 0
    bo.git("commit", "--quiet", "--no-edit")
    assert bo.clean()
    assert list(bo.root.glob("ContextMemory/memories/**/deploy.yaml")) == [bo.root / moved]
    assert "importance: 4" in bo.read(moved)
    assert "wholly other words" in bo.read(moved)


def test_what_a_person_made_of_it_stays(clones: Two, memfs: Memfs) -> None:
    """A file that somebody put right by hand is taken as it is: uncommitted edits are never overwritten."""
    _, bo = apart(clones)
    mine = "content: Deploy nowhere.\ncreated: '2026-03-01T10:00:00Z'\n# mine\n"
    bo.write(mine)
    assert "yours" in memfs(bo, "team", "conflicts", "resolve", "--all").out
    assert bo.read() == mine
    bo.git("commit", "--quiet", "--no-edit")
    assert bo.git("show", f"HEAD:{ITEM}").out == mine


def test_what_a_person_left_invalid_is_not_taken(clones: Two, memfs: Memfs) -> None:
    """Without markers, and no memory either: the versions are joined, and what was there is set aside."""
    _, bo = apart(clones)
    bo.write("content: [half\n")
    assert memfs(bo, "team", "conflicts", "resolve", "--all").code == 0
    assert "half" not in bo.read()
    name = memfs(bo, "restore", "--displaced", "--json").json["recoverable"][0]["name"]
    kept = next(bo.root.glob(f".git/memfs/*/recovered/{name}*"))
    assert "content: [half" in kept.read_text()


def test_half_of_a_persons_work_is_set_aside(clones: Two, memfs: Memfs) -> None:
    """Edits beside markers that are left cannot be distinguished from git's lines: the file is set aside."""
    _, bo = apart(clones)
    half = bo.read() + "# half way\n"
    bo.write(half)
    assert memfs(bo, "team", "conflicts", "resolve", "--all").code == 0
    name = memfs(bo, "restore", "--displaced", "--json").json["recoverable"][0]["name"]
    assert name.startswith("merge-")
    kept = next(bo.root.glob(f".git/memfs/*/recovered/{name}*"))
    assert half in kept.read_text()


def test_a_rebase_goes_on_after_it(clones: Two, memfs: Memfs) -> None:
    """In the middle of a rebase nothing of memfs's waits afterwards, and the branch holds what was joined."""
    ada, bo = clones
    ada.edit("Frankfurt", "Vienna")
    bo.edit("Frankfurt", "Linz")
    bo.edit("Tuesdays", "Fridays")
    bo.git("fetch", "--quiet", str(ada.root), "main")
    bo.git("rebase", "--quiet", "FETCH_HEAD", code=1)
    for _ in range(2):
        if memfs(bo, "team", "conflicts", "--json").json["open"]:
            done = memfs(bo, "team", "conflicts", "resolve", "--all")
            assert "git rebase --continue" in done.err
            bo.git("-c", "core.editor=true", "rebase", "--continue", code=None)
    assert "rebase" not in bo.git("status").out
    assert bo.clean()
    assert memfs(bo, "status", "--json").json["pending_commits"] == 0
    assert "conflicts:" in bo.read()


def test_git_stash_pop_leaves_the_same(clones: Two, memfs: Memfs) -> None:
    """Where no merge goes on, but the index holds versions, they are joined and staged."""
    ada, bo = clones
    ada.edit("Frankfurt", "Vienna")
    bo.write(bo.read().replace("Frankfurt", "Linz"))
    bo.git("stash", "--quiet")
    bo.pull(ada)
    bo.git("stash", "pop", code=1)
    done = memfs(bo, "team", "conflicts", "resolve", "--all", "--json").json
    assert [one["conflicts"][0]["field"] for one in done["files"]] == ["content"]
    assert bo.git("status", "--porcelain").out == f"M  {ITEM}\n"


def test_markers_that_were_committed_are_named(clones: Two, memfs: Memfs) -> None:
    """Somebody committed the markers: the check names the line and what to do, and nothing is guessed (row 43)."""
    _, bo = apart(clones)
    bo.commit("Markers and all")
    marked = bo.read()
    assert "merge conflict markers at line" in memfs(bo, "check").out
    assert memfs(bo, "team", "conflicts", "--json").json["waiting"] == 0
    done = memfs(bo, "team", "conflicts", "resolve", "deploy")
    assert (done.code, "no merge in progress left 'deploy'" in done.err) == (1, True)
    assert memfs(bo, "team", "conflicts", "resolve", "--all").code == 0
    assert bo.read() == marked


# -- manners ------------------------------------------------------------------------------------------------------
def test_files_that_are_not_memory_are_left_to_the_person(clones: Two, memfs: Memfs) -> None:
    """Only memory is joined; what else is open is counted (row 33)."""
    ada, bo = clones
    for one in (ada, bo):
        one.write(f"print({one.root.name!r})\n", "app.py")
        one.commit()
    _, bo = apart((ada, bo))
    assert "git status" in memfs(bo, "team", "conflicts", "resolve", "--all").err
    assert memfs(bo, "team", "conflicts", "--json").json["others"] == 1
    assert bo.git("ls-files", "-u").out.count("app.py") == 2


def test_a_held_index_is_reported_and_repeating_finishes(
    clones: Two, memfs: Memfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody holds the index: the message names the lock, and the same command finishes afterwards (row 39)."""
    monkeypatch.setattr("memfs.git.commits._STAGE_TRIES", 1)
    _, bo = apart(clones)
    lock = bo.root / ".git/index.lock"
    lock.touch()
    done = memfs(bo, "team", "conflicts", "resolve", "--all")
    assert done.code == 1
    assert "index.lock" in done.err
    lock.unlink()
    assert memfs(bo, "team", "conflicts", "resolve", "--all").code == 0
    bo.git("commit", "--quiet", "--no-edit")
    assert bo.clean()


def test_killed_between_file_and_index_it_is_repeated(clones: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is joined, the index is not: the next time gives the same (row 21)."""
    _, bo = apart(clones)
    with monkeypatch.context() as patch, open_workspace(bo.root, watch=False) as workspace:

        def killed(*_: object) -> None:
            raise GitBusy("killed here")

        patch.setattr(resolve, "stage", killed)
        with pytest.raises(GitBusy):
            workspace.teams.resolver.finish()
    joined = bo.read()
    with open_workspace(bo.root, watch=False) as workspace:
        outcome = workspace.teams.resolver.finish()[0]
        assert not outcome.own
        assert workspace.teams.resolver.waiting().open == ()
    assert bo.read() == joined


def test_what_cannot_be_understood_is_refused(clones: Two, memfs: Memfs) -> None:
    """Options that contradict each other and names nobody knows are distinguished, with the next step."""
    ada, _ = clones
    for words in (
        ("--keep", "ours"),
        ("deploy", "--all"),
        ("deploy", "--keep", "what"),
        ("deploy", "--field", "title"),
    ):
        assert memfs(ada, "team", "conflicts", "resolve", *words).code == 2
    done = memfs(ada, "team", "conflicts", "resolve", "deploy")
    assert done.code == 1
    assert "no merge in progress left 'deploy'" in done.err
    assert memfs(ada, "team", "conflicts", "resolve", "deploy", "--keep", "kept").code == 1
    assert memfs(ada, "team", "conflicts").err.startswith("memfs: 0 conflicts")
    assert "nothing is open" in memfs(ada, "team", "conflicts", "resolve", "--all").err


# -- recorded conflicts -------------------------------------------------------------------------------------------
def contested(clone: Clone, entries: str, text: str = "") -> None:
    """Give the item conflicts, as a merge would."""
    clone.write((text or clone.read()) + "conflicts:\n" + entries)
    clone.commit("Merge")


@pytest.mark.parametrize("keep", ["kept", "lost"])
def test_a_decision_made_during_a_merge_is_part_of_its_commit(joining: Two, memfs: Memfs, keep: str) -> None:
    """While git waits for a file that is not memory, a decision is staged; memfs makes no commit of it (B3)."""
    ada, bo = joining
    for one, place in ((ada, "Vienna"), (bo, "Linz")):
        one.write(f"print({one.root.name!r})\n", "app.py")
        one.edit("Frankfurt", place)
    bo.pull(ada, code=1)
    decided = memfs(bo, "team", "conflicts", "resolve", "deploy", "--keep", keep)
    assert (decided.code, "nothing waits for a decision" in decided.err) == (0, True)
    bo.git("checkout", "--ours", "app.py")
    bo.git("add", "app.py")
    assert bo.git("diff", "--name-only").out == ""
    bo.git("commit", "--quiet", "--no-edit")
    merge = bo.git("rev-parse", "HEAD").out
    assert memfs(bo, "commit").code == 0
    assert (bo.git("rev-parse", "HEAD").out, bo.clean(), "conflicts:" in bo.read()) == (merge, True, False)


def test_one_field_after_the_other(clones: Two, memfs: Memfs) -> None:
    """Each field is decided for itself: kept as it is, or the other value taken; one commit each (B3)."""
    ada, _ = clones
    contested(
        ada,
        "- field: content\n  kept: Ask Bo first.\n  lost: Ask Ada first.\n  part: true\n"
        "- field: title\n  kept: Deploy target\n  lost: Where we deploy\n"
        "- field: importance\n  kept: 2\n",
    )
    assert memfs(ada, "team", "conflicts", "--json").json["waiting"] == 3
    assert memfs(ada, "team", "conflicts", "resolve", "deploy", "--field", "content", "--keep", "lost").code == 0
    assert "Deploy to Frankfurt on Tuesdays.\n  Ask Ada first.\n  Then watch" in ada.read()
    assert memfs(ada, "team", "conflicts", "--json").json["waiting"] == 2
    assert memfs(ada, "team", "conflicts", "resolve", "deploy", "--field", "title", "--keep", "kept").code == 0
    assert "title: Deploy target\n" in ada.read()
    assert memfs(ada, "team", "conflicts", "resolve", "--all", "--keep", "lost", "--json").json["decided"][0][
        "fields"
    ] == ["importance"]
    assert "importance" not in ada.read()
    assert "conflicts" not in ada.read()
    assert ada.clean()
    assert ada.git("log", "--format=%s", "-3").out.count(" value in ") == 3


def test_of_several_values_that_gave_way_one_is_chosen(clones: Two, memfs: Memfs) -> None:
    """Nobody guesses which of two values is meant; what has another value by now is in nobody's way (B3)."""
    ada, _ = clones
    contested(
        ada,
        "- field: importance\n  kept: 7\n  lost: 9\n"
        "- field: title\n  kept: Deploy target\n  lost: Where we deploy\n"
        "- field: title\n  kept: Deploy target\n  lost: Where to deploy\n"
        "- field: content\n  kept: Ask Bo first.\n  lost: Ask Ada first.\n  part: true\n",
    )
    assert "two values of title in deploy\n" in memfs(ada, "team", "conflicts").out
    refused = memfs(ada, "team", "conflicts", "resolve", "deploy", "--keep", "lost")
    assert (refused.code, "several values were not kept" in refused.err) == (1, True)
    assert memfs(ada, "update", "deploy", "--title", "Where to deploy").code == 0
    assert "title: Where to deploy\n" in ada.read()
    assert memfs(ada, "team", "conflicts", "--json").json["waiting"] == 1
    assert memfs(ada, "team", "conflicts", "resolve", "deploy", "--keep", "lost").code == 0
    assert "Ask Ada first." in ada.read()
    assert "importance: 2\n" in ada.read()
    assert "conflicts" not in ada.read()


def test_nobody_removes_an_item_by_accident(clones: Two, memfs: Memfs) -> None:
    """Taking everything where one of the conflicts is the item's removal is refused; that one is taken by itself."""
    ada, _ = clones
    contested(
        ada,
        "- field: title\n  kept: Deploy target\n  lost: Where we deploy\n"
        "- field: ''\n  kept: edited\n  lost: deleted\n",
    )
    refused = memfs(ada, "team", "conflicts", "resolve", "deploy", "--keep", "lost")
    assert (refused.code, '--field ""' in refused.err) == (1, True)
    removing = ("team", "conflicts", "resolve", "deploy", "--keep", "lost", "--field", "")
    assert memfs(ada, *removing, "--json").json["decided"][0]["removed"]
    assert not (ada.root / ITEM).exists()


def test_one_item_that_cannot_be_decided_stops_no_other(clones: Two, memfs: Memfs) -> None:
    """With --all the others are decided and reported; the exit code says that something was left."""
    ada, _ = clones
    two = "- field: title\n  kept: Deploy target\n  lost: a\n- field: title\n  kept: Deploy target\n  lost: b\n"
    ada.write(
        ada.read() + "conflicts:\n- field: title\n  kept: Deploy target\n  lost: c\n", ITEM.replace("deploy", "z")
    )
    contested(ada, two)
    done = memfs(ada, "team", "conflicts", "resolve", "--all", "--keep", "lost")
    assert (done.code, "deploy" in done.err, "z: title is now 'c'" in done.out) == (1, True, True)
    assert "title: c\n" in ada.read(ITEM.replace("deploy", "z"))


def test_a_field_that_was_edited_since_waits_for_nobody(clones: Two, memfs: Memfs) -> None:
    """A record whose field has another value by now is not listed; taking the old value is refused."""
    ada, _ = clones
    contested(ada, "- field: title\n  kept: Another\n  lost: Where we deploy\n")
    assert memfs(ada, "team", "conflicts", "--json").json["waiting"] == 0
    assert memfs(ada, "team", "conflicts", "resolve", "deploy", "--keep", "lost").code == 1
    assert memfs(ada, "team", "conflicts", "resolve", "deploy", "--keep", "kept").code == 0
    assert "conflicts" not in ada.read()


def test_a_value_too_long_for_its_record_comes_from_history(joining: Two, memfs: Memfs) -> None:
    """Where the record names the version alone, taking it looks the value up in the history (B3)."""
    ada, bo = joining
    for one in (ada, bo):
        one.edit("- ops", f"- ops\n- {one.root.name}")
        one.write(one.read().replace("Deploy to", f"{one.root.name} " * 1500 + "Deploy to"))
        one.commit()
    bo.pull(ada)
    entry = next(
        one
        for one in memfs(bo, "team", "conflicts", "--json").json["items"][0]["conflicts"]
        if one["field"] == "content"
    )
    assert (entry["lost"], len(entry["lost_sha256"])) == (None, 64)
    assert memfs(bo, "team", "conflicts").out.count("a longer text than is kept here") == 2
    words = {name: bo.read().count(f"{name} ") for name in ("ada", "bo")}
    assert memfs(bo, "team", "conflicts", "resolve", "deploy", "--field", "content", "--keep", "lost").code == 0
    after = {name: bo.read().count(f"{name} ") for name in ("ada", "bo")}
    gone, there = ("ada", "bo") if words["ada"] > after["ada"] else ("bo", "ada")
    assert words[gone] - after[gone] == 1500
    assert after[there] - words[there] == 1500


def test_a_records_document_that_was_removed_on_one_side(clones: Two, memfs: Memfs) -> None:
    """A state document that one side removed and the other changed stays, unless that side is taken (B3)."""
    ada, bo = clones
    ada.git("rm", "--quiet", RESULT)
    ada.git("commit", "--quiet", "--message", "Gone")
    bo.edit('"winner": "h1"', '"winner": "h3"', RESULT)
    bo.pull(ada, code=1)
    assert memfs(bo, "team", "conflicts", "resolve", RESULT, "--keep", "theirs").code == 0
    bo.git("commit", "--quiet", "--no-edit")
    assert not (bo.root / RESULT).exists()
    assert memfs(bo, "team", "conflicts", "--json").json["waiting"] == 0


def test_deciding_from_python(clones: Two) -> None:
    """``workspace.teams.resolver`` lists and decides without the command line."""
    ada, _ = clones
    contested(ada, "- field: title\n  kept: Deploy target\n  lost: Where we deploy\n")
    with open_workspace(ada.root, watch=False) as workspace:
        waiting = workspace.teams.resolver.waiting()
        assert waiting.count == 1
        decided = workspace.teams.resolver.decide("deploy", take=True)
        item = workspace.store.get("deploy")
        assert isinstance(item, MemoryItem)
        assert item.title == "Where we deploy"
        assert item.conflicts == ()
        assert decided == resolve.DecisionResult(id="deploy", path=ITEM, settled=waiting.items[0].conflicts, item=item)


def test_values_that_say_the_same_are_one_decision(clones: Two) -> None:
    """However many writers had the value that was not kept (B3)."""
    ada, _ = clones
    ada.edit("trust: human\n", "trust: human\norigin:\n  agent: bot\n")
    entry = "- field: title\n  kept: Deploy target\n  lost: There\n  by: {}\n"
    contested(ada, "".join(map(entry.format, ("bo", "cy"))))
    with open_workspace(ada.root, watch=False) as workspace:
        taken = workspace.teams.resolver.decide("deploy", take=True)
        assert taken.item is not None
        assert (taken.item.title, taken.item.conflicts) == ("There", ())
        workspace.store.flush()
    assert "Memfs-Agent" not in ada.git("log", "-1", "--format=%B").out  # a person has decided


# -- markers ------------------------------------------------------------------------------------------------------
def test_the_json_of_a_document_stays_one(clones: Two, memfs: Memfs) -> None:
    """A state document with markers is joined like an item, and is valid JSON (B3)."""
    ada, bo = clones
    for one, name in ((ada, "h2"), (bo, "h3")):
        one.edit('"winner": "h1"', f'"winner": "{name}"', RESULT)
    bo.pull(ada, code=1)
    assert memfs(bo, "team", "conflicts", "resolve", RESULT).code == 0
    assert json.loads(bo.read(RESULT))["winner"] in ("h2", "h3")
    bo.git("commit", "--quiet", "--no-edit")
    assert memfs(bo, "team", "conflicts", "--json").json["waiting"] == 0
    assert bo.clean()


def moved_by_both(clones: Two) -> dict[str, str]:
    """Both move the item to places of their own, and edit it: where it is in each clone."""
    places = {}
    for one in clones:
        places[one.root.name] = ITEM.replace("2026-03", one.root.name)
        (one.root / places[one.root.name]).parent.mkdir(parents=True)
        one.git("mv", ITEM, places[one.root.name])
        one.edit("Frankfurt", one.root.name, places[one.root.name])
    return places


def items_of(clone: Clone) -> list[str]:
    """Where the item is."""
    return [str(path.relative_to(clone.root)) for path in clone.root.glob("ContextMemory/memories/**/deploy.yaml")]


def test_both_sides_moved_the_item(clones: Two, memfs: Memfs) -> None:
    """Two new places and an old one are one item, in the same place no matter who joins them (B3)."""
    ada, bo = clones
    places = moved_by_both(clones)
    for one, other in ((bo, ada), (ada, bo)):
        other.git("branch", "moved", *(["HEAD^1"] if one is ada else []))
        one.git("fetch", "--quiet", str(other.root), "moved")
        one.git("merge", "--quiet", "--no-edit", "FETCH_HEAD", code=1)
        assert memfs(one, "team", "conflicts", "resolve", "--all").code == 0
        one.git("commit", "--quiet", "--no-edit")
        assert one.clean()
        assert items_of(one) == [places["bo"]]
        assert "conflicts:" in one.read(places["bo"])
    assert ada.read(places["bo"]) == bo.read(places["bo"])


def test_lines_that_crossed_with_the_item_in_two_places(clones: Two, memfs: Memfs) -> None:
    """Where each had left the item at its own place, it still is one item, and both edits are in it (B3)."""
    ada, bo = clones
    places = moved_by_both(clones)
    for one, other in ((ada, bo), (bo, ada)):
        one.git("fetch", "--quiet", str(other.root), "main")
    for one in clones:
        one.git("merge", "--quiet", "--no-commit", "--strategy=ours", "FETCH_HEAD")
        one.commit("Left at its place")
        one.edit("- ops", f"- ops\n- {one.root.name}", places[one.root.name])
    bo.pull(ada, code=1)
    assert len(bo.git("status", "--porcelain").out.splitlines()) == 2
    assert memfs(bo, "team", "conflicts", "--json").json["waiting"] == 1
    assert memfs(bo, "team", "conflicts", "resolve", "--all").code == 0
    bo.git("commit", "--quiet", "--no-edit")
    (place,) = items_of(bo)
    assert place in places.values()
    assert "- ada\n" in bo.read(place)
    assert "- bo\n" in bo.read(place)
    assert bo.clean()


def test_a_persons_choice_of_the_place_is_kept(clones: Two, memfs: Memfs) -> None:
    """Ending the merge at one of two places keeps that file; work at the other place is set aside (row 43)."""
    ada, bo = clones
    places = moved_by_both(clones)
    bo.pull(ada, code=1)
    bo.write(TEXT.replace("Frankfurt", "Vienna"), places["ada"])
    (bo.root / places["bo"]).unlink()
    assert memfs(bo, "team", "conflicts", "resolve", "--all", "--json").json["files"][0]["outcome"] == "own"
    assert items_of(bo) == [places["ada"]]
    assert "Vienna" in bo.read(places["ada"])
    bo.git("reset", "--quiet", "--hard")
    bo.pull(ada, code=1)
    for name, place in places.items():
        bo.write(TEXT.replace("Frankfurt", f"Vienna of {name}"), place)
    assert memfs(bo, "team", "conflicts", "resolve", "--all", "--json").json["files"][0]["outcome"] == "own"
    assert "Vienna of bo" in bo.read(places["bo"])
    assert "merge-" in memfs(bo, "restore", "--displaced").out


def test_what_is_not_a_file_is_left(clones: Two, memfs: Memfs) -> None:
    """A link in the place of an item on one side is git's to solve: nothing is written through it (row 12)."""
    ada, bo = clones
    (ada.root / ITEM).unlink()
    (ada.root / ITEM).symlink_to("/etc/hostname")
    ada.commit()
    bo.edit("importance: 2", "importance: 4")
    bo.pull(ada, code=1)
    listed = memfs(bo, "team", "conflicts", "--json").json
    assert (listed["open"], listed["others"]) == ([], 2)
    assert memfs(bo, "team", "conflicts", "resolve", "--all").code == 0
    assert bo.git("ls-files", "-u").out
