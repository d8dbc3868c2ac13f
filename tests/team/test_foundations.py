"""Conflict markers in the files that a workspace needs to open are named with the way out (faults row 43; K4)."""

from __future__ import annotations

from collections.abc import Callable

from twoclones import Clone, Done, clones, memfs, pristine

__all__ = ["clones", "memfs", "pristine"]

Memfs = Callable[..., Done]
Two = tuple[Clone, Clone]
SETTINGS, KINDS = "memfs.toml", "ContextMemory/configuration/kinds.yaml"
KIND = "kinds:\n  runbook:\n    layer: semantic\n    description: How it is done\n"


def apart(two: Two) -> Clone:
    """Both change one setting and one field of a kind; Bo's merge of Ada's stops with markers in both files."""
    ada, bo = two
    ada.write("[recall]\nlimit = 5\n", SETTINGS)
    ada.write(KIND, KINDS)
    ada.commit()
    bo.pull(ada)
    for one, number, word in ((ada, 6, "ever"), (bo, 7, "never")):
        one.edit("limit = 5", f"limit = {number}", SETTINGS)
        one.edit("How it is", f"How it is {word}", KINDS)
    bo.pull(ada, code=1)
    return bo


def test_what_keeps_a_workspace_closed_is_named_with_the_way_out(clones: Two, memfs: Memfs) -> None:
    """Every verb names the file and the line, and what to do; done so, the merge is finished (K4)."""
    bo = apart(clones)
    for words in (("status",), ("check",), ("team", "conflicts"), ("recall", "deploy")):
        done = memfs(bo, *words)
        assert done.code != 0
        assert "memfs.toml:2" in done.err
        assert "conflict markers" in done.err
        assert "git add memfs.toml" in done.err
    bo.write("[recall]\nlimit = 6\n", SETTINGS)
    done = memfs(bo, "recall", "deploy")
    assert f"{KINDS}:4" in done.err
    assert "delete the marker lines" in done.err
    bo.write(KIND, KINDS)
    bo.git("add", SETTINGS, KINDS)
    bo.git("commit", "--quiet", "--no-edit")
    assert bo.clean()
    assert (bo.read(SETTINGS), bo.read(KINDS)) == ("[recall]\nlimit = 6\n", KIND)
