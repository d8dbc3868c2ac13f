"""With conflict markers in the files that a workspace needs to open, memfs says so and mends it (faults row 43; K4)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from twoclones import Clone, Done, clones, memfs, pristine_memory

from memfs.errors import GitBusy
from memfs.format.conflict_markers import spans
from memfs.team import resolve
from memfs.team.resolve import Foundations, broken

__all__ = ["clones", "memfs", "pristine_memory"]

Memfs = Callable[..., Done]
Two = tuple[Clone, Clone]
SETTINGS, KINDS = "memfs.toml", "ContextMemory/configuration/kinds.yaml"
KIND = "kinds:\n  runbook:\n    layer: semantic\n    description: How it is done\n"


def base(two: Two) -> Two:
    """Both begin with a setting and a kind of their own."""
    ada, bo = two
    ada.write("[recall]\nlimit = 5\n", SETTINGS)
    ada.write(KIND, KINDS)
    ada.commit()
    bo.pull(ada)
    return two


def apart(two: Two) -> Two:
    """Both change one setting and one field of the kind; Bo's merge of Ada's stops with markers in both files."""
    ada, bo = base(two)
    for one, number, word in ((ada, 6, "ever"), (bo, 7, "never")):
        one.edit("limit = 5", f"limit = {number}", SETTINGS)
        one.edit("How it is", f"How it is {word}", KINDS)
    bo.pull(ada, code=1)
    assert broken(bo.root) == (SETTINGS, KINDS)
    return two


def test_what_keeps_a_workspace_closed_is_told_with_both_values(clones: Two, memfs: Memfs) -> None:
    """Status, check and resolve name the file, the lines and both values; every other verb says where to go (K4)."""
    _, bo = apart(clones)
    for words, code in ((("status",), 1), (("check",), 2)):
        done = memfs(bo, *words)
        assert done.code == code
        assert "memfs.toml:2: error: a merge left conflict markers in lines 2 to 6" in done.out
        assert "recall.limit (ours 7, theirs 6)" in done.out
    problems = memfs(bo, "check", "--json").json["problems"]
    assert [(one["path"], one["line"], one["code"]) for one in problems] == [
        (SETTINGS, 2, "ConflictMarkers"),
        (KINDS, 4, "ConflictMarkers"),
    ]
    told = memfs(bo, "resolve", "--json").json
    assert told["waiting"] == 2
    assert (told["blocked"][0]["lines"], told["blocked"][0]["values"]) == (
        [[2, 6]],
        [{"field": "recall.limit", "ours": 7, "theirs": 6}],
    )
    assert set(told["blocked"][1]["values"][0].values()) == {
        "kinds.runbook.description",
        "How it is ever done",
        "How it is never done",
    }
    assert "memfs resolve memfs.toml --ours|--theirs" in memfs(bo, "resolve").out
    assert "'memfs resolve'" in memfs(bo, "recall", "deploy").err


def test_resolve_ends_it_by_the_same_rules(clones: Two, memfs: Memfs) -> None:
    """The document is joined, what gave way is kept; of a setting somebody chooses; git's own commit ends it (K4)."""
    _, bo = apart(clones)
    tried = memfs(bo, "resolve", "--all", "--dry-run")
    assert (tried.code, "would be joined" in tried.out, len(broken(bo.root))) == (1, True, 2)
    done = memfs(bo, "resolve", "--all", "--json")
    assert done.code == 1
    assert {one["path"]: one["outcome"] for one in done.json["files"]} == {SETTINGS: "left", KINDS: "joined"}
    assert broken(bo.root) == (SETTINGS,)
    assert memfs(bo, "resolve", "deploy").code == 1
    assert memfs(bo, "resolve", SETTINGS, "--ours").code == 0
    assert bo.read(SETTINGS) == "[recall]\nlimit = 7\n"
    bo.git("commit", "--quiet", "--no-edit")
    assert bo.clean()
    (kept,) = memfs(bo, "resolve", "--json").json["documents"]
    assert {kept["kept"], kept["lost"]} == {"How it is ever done", "How it is never done"}
    assert memfs(bo, "resolve", KINDS, "--take").code == 0
    assert kept["lost"] in bo.read(KINDS)


def test_other_files_are_ended_by_the_same_command(clones: Two, memfs: Memfs) -> None:
    """Once the workspace opens again, --all goes on with what else git left open."""
    ada, bo = base(clones)
    for one, number, city in ((ada, 6, "Vienna"), (bo, 7, "Linz")):
        one.edit("limit = 5", f"limit = {number}", SETTINGS)
        one.edit("Frankfurt", city)
    bo.pull(ada, code=1)
    done = memfs(bo, "resolve", "--all", "--theirs")
    assert (done.code, done.out.count("theirs  ")) == (0, 2)
    assert "limit = 6" in bo.read(SETTINGS)
    assert "Vienna" in bo.read()
    bo.git("commit", "--quiet", "--no-edit")
    assert bo.clean()


def test_independent_settings_are_joined(clones: Two, memfs: Memfs) -> None:
    """Settings in neighbouring lines, over which git stops, are both taken (K4)."""
    ada, bo = base(clones)
    ada.edit("limit = 5", "limit = 6", SETTINGS)
    bo.edit("limit = 5", 'limit = 5\npreset = "fading"', SETTINGS)
    bo.pull(ada, code=1)
    assert memfs(bo, "resolve", "--all").code == 0
    assert bo.read(SETTINGS) == '[recall]\nlimit = 6\npreset = "fading"\n'


def test_markers_that_were_committed_are_mended_too(clones: Two, memfs: Memfs) -> None:
    """Where git takes the file for merged the versions are those between the markers; what is in no commit is kept."""
    _, bo = apart(clones)
    bo.commit("Markers and all")
    bo.write(bo.read(SETTINGS) + "# mine\n", SETTINGS)
    assert memfs(bo, "resolve", "--all", "--ours").code == 0
    assert bo.read(SETTINGS) == "[recall]\nlimit = 7\n# mine\n"
    assert "never" in bo.read(KINDS)
    assert SETTINGS in memfs(bo, "recover").out
    assert memfs(bo, "status").code == 0


def test_markers_that_do_not_pair_are_left(clones: Two, memfs: Memfs) -> None:
    """Where nobody can tell the versions apart nothing is written, and the reason is told."""
    _, bo = clones
    text = "[recall]\n<<<<<<< ours\nlimit = 7\n"
    bo.write(text, SETTINGS)
    bo.commit()
    done = memfs(bo, "resolve", "--all", "--ours")
    assert (done.code, "do not pair" in done.out, bo.read(SETTINGS)) == (1, True, text)
    assert "lines 2 to 4" in memfs(bo, "check").out


def test_killed_between_file_and_index_it_opens_and_is_finished(
    clones: Two, memfs: Memfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files are mended, the index is not: the workspace opens, and resolve ends the merge (row 21)."""
    _, bo = apart(clones)
    with monkeypatch.context() as patch, Foundations(bo.root) as foundations:

        def killed(*_: object) -> None:
            raise GitBusy("killed here")

        patch.setattr(resolve, "stage", killed)
        with pytest.raises(GitBusy):
            foundations.finish(side="theirs")
    assert broken(bo.root) == ()
    assert [one["path"] for one in memfs(bo, "resolve", "--json").json["open"]] == [KINDS, SETTINGS]
    assert memfs(bo, "resolve", "--all", "--theirs").code == 0
    bo.git("commit", "--quiet", "--no-edit")
    assert "limit = 6" in bo.read(SETTINGS)


def test_stretches_between_markers_are_counted_from_one() -> None:
    """The lines of each stretch, its markers included; one that does not end goes to the end."""
    block = b"<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n"
    assert spans(b"a\n" + block + b"b\n" + block) == [(2, 6), (8, 12)]
    assert spans(b"plain\n=======\n") == []
    assert spans(b"x\n>>>>>>> b\n") == [(2, 2)]
