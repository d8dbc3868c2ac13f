"""Taking an item out of single git objects, and building a repository without it beside the old one (B6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memfs.errors import EraseRefused, GitFailed
from memfs.git import rewrite as rewriting
from memfs.git.rewrite import (
    HistoryRemoval,
    HistorySurvey,
    Rewriter,
    Traces,
    edit_object,
    edit_reflog,
    edit_tree,
    entries,
    folders,
    ids,
    named_in_commit,
    packed_text,
)

ITEM = "ContextMemory/memories/semantic/2026-11/use-postgres-7h2k9q.yaml"
OLD, NEW, OTHER = "1" * 40, "2" * 40, "3" * 40
TRACES = Traces(versions=(frozenset({b"opens with marten", b"by the mill gate"}),), names=(b"gate-of-mill-22",))
NOTHING = Traces(versions=(), names=())


def tree(*rows: tuple[str, str, str]) -> bytes:
    """A tree object of modes, names and ids, in the order given."""
    return b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(found) for mode, name, found in rows)


# -- single objects -----------------------------------------------------------------------------------------------
def test_a_tree_loses_ids_and_names_and_keeps_its_form() -> None:
    """Modes of old programs, order and all other entries stay byte for byte; an emptied folder disappears."""
    data = tree(("100664", "a", OTHER), ("100644", "b", OLD), ("040000", "c", NEW), ("160000", "d", "4" * 40))
    table = {bytes.fromhex(OLD): None, bytes.fromhex(NEW): bytes.fromhex("5" * 40)}
    assert edit_tree(data, (), table) == tree(
        ("100664", "a", OTHER), ("040000", "c", "5" * 40), ("160000", "d", "4" * 40)
    )
    assert edit_tree(data, {b"a"}, {bytes.fromhex(NEW): None}) == tree(("100644", "b", OLD), ("160000", "d", "4" * 40))
    assert [name for _, name, _ in entries(data)] == [b"a", b"b", b"c", b"d"]
    assert folders(data) == [(b"c", NEW)]
    assert ids(data) == {bytes.fromhex(found) for found in (OTHER, OLD, NEW, "4" * 40)}


def test_a_tree_is_read_right_whatever_bytes_its_ids_hold() -> None:
    """Ids that look like modes, separators and line ends mislead nobody."""
    odd = [b"40000 x\0" + b"1" * 12, b"\0" * 20, b"\n" * 20, b"100644 a\0" + b"\n" * 11]
    data = b"".join(
        b"%s n%d\0%s" % (b"40000" if number % 2 else b"100644", number, found) for number, found in enumerate(odd)
    )
    assert [found for _, _, found in entries(data)] == odd
    assert [found for _, found in folders(data)] == [found.hex() for found in odd[1::2]]


COMMIT = (
    f"tree {OLD}\nparent {OTHER}\nparent {NEW}\n"
    "author Ada <a@example.org> 1700000000 +0130\ncommitter Bob <b@example.org> 1700000001 -0500\n"
    "encoding ISO-8859-1\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n abc\n -----END PGP SIGNATURE-----\n"
    "\nKeep this\n\nThe door opens with marten.\n"
).encode()


def test_a_commit_keeps_all_but_ids_signature_and_the_items_words() -> None:
    """Author, committer, dates, encoding and order of parents stay; the signature, which would be wrong, goes."""
    after = edit_object(COMMIT, {OLD: "5" * 40, NEW: "6" * 40}, TRACES, names=False)
    assert named_in_commit(after) == ("5" * 40, (OTHER, "6" * 40))
    assert b"author Ada <a@example.org> 1700000000 +0130\n" in after
    assert b"committer Bob <b@example.org> 1700000001 -0500\nencoding ISO-8859-1\n\nKeep this\n\n" in after
    assert after.endswith(b"The door [erased].\n")
    assert b"gpgsig" not in after


def test_a_commit_that_does_not_change_keeps_its_signature() -> None:
    """Nothing to be replaced and nothing to be hidden: the same bytes."""
    assert edit_object(COMMIT, {"7" * 40: NEW}, NOTHING, names=True) == COMMIT


def test_a_tag_follows_its_object_and_loses_its_signature() -> None:
    """The target's new id, the message without the item's words, no signature."""
    data = f"object {OLD}\ntype commit\ntag v1\ntagger A <a@b> 1 +0000\n\nIt opens with marten\n".encode()
    signed = data + b"-----BEGIN PGP SIGNATURE-----\nabc\n-----END PGP SIGNATURE-----\n"
    assert edit_object(signed, {OLD: NEW}, TRACES) == data.replace(OLD.encode(), NEW.encode()).replace(
        b"opens with marten", b"[erased]"
    )
    assert edit_object(signed, {}, NOTHING) == signed


def test_a_reflog_names_new_ids_wherever_it_named_old_ones() -> None:
    """Also inside a message such as ``branch: Created from <id>``."""
    line = f"{OLD} {OTHER} A <a@b> 1 +0000\tbranch: Created from {OLD}\n".encode()
    assert edit_reflog(line, {OLD: NEW}, TRACES) == line.replace(OLD.encode(), NEW.encode())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (b"Remember gate-of-mill-22", b"Remember [erased]"),
        (b"Remember gate-of-mill-22.", b"Remember [erased]."),
        (b"see GATE-of-mill-22.yaml", b"see GATE-of-mill-22.yaml"),
        (b"the-gate-of-mill-22", b"the-gate-of-mill-22"),
        (b"gate-of-mill-225", b"gate-of-mill-225"),
    ],
)
def test_an_id_goes_as_a_word_only(text: bytes, wanted: bytes) -> None:
    """Longer names that contain it are other items'."""
    assert TRACES.redact(text, names=True) == wanted


def test_a_unique_id_goes_everywhere_and_a_plain_word_only_where_it_is_meant() -> None:
    """``gate`` may be anybody's word; ``gate-of-mill-22`` is nobody else's."""
    plain = Traces(versions=(), names=(b"gate",))
    assert plain.redact(b"Paint the gate", names=False) == b"Paint the gate"
    assert plain.redact(b"Remember gate", names=True) == b"Remember [erased]"
    assert TRACES.redact(b"About gate-of-mill-22", names=False) == b"About [erased]"


def test_a_copy_holds_all_phrases_of_a_version_and_a_quote_holds_one() -> None:
    """A text with one line of the item is somebody else's; one with all of them is the item."""
    assert TRACES.quoted_in(b"he said it opens with marten")
    assert not TRACES.copied_in([b"he said it opens with marten"])
    assert TRACES.copied_in([b"it opens with mar", b"ten, by the mill gate"])
    assert not NOTHING.copied_in([b"anything"])


def test_packed_refs_are_sorted_as_git_wants_them(world: Any) -> None:
    """git reads what was written, whatever the names."""
    head = world.git("rev-parse", "HEAD").strip()
    refs = {f"refs/heads/{name}": head for name in ("zoé", "a/b", "main", "Z")}
    (world.root / ".git/packed-refs").write_bytes(packed_text(refs))
    assert set(world.git("for-each-ref", "--format=%(refname)").split()) == set(refs)


# -- whole repositories -------------------------------------------------------------------------------------------
@pytest.fixture
def filled(world: Any) -> Any:
    """A world whose item is in the middle of five commits."""
    world.commit(world.put(ITEM, "title: second\n"))
    for number in range(3):
        world.commit(world.put(f"ContextMemory/memories/semantic/2026-11/n{number}.yaml", f"title: {number}\n"))
    return world


def rewriter_of(world: Any, folder: Path) -> Rewriter:
    """The rewriting of a world without its item."""
    survey = HistorySurvey(world.repository)
    versions = survey.versions(b"ContextMemory", lambda path: path == ITEM.encode())
    cuts = {tree: frozenset(cut) for tree, cut in versions.cuts.items()}
    removal = HistoryRemoval(blobs=frozenset(versions.blobs), paths=frozenset({ITEM.encode()}), cuts=cuts)
    return Rewriter(world.repository, survey, removal, folder)


def test_the_successor_is_the_same_without_the_item(filled: Any, tmp_path: Path) -> None:
    """It passes git's check with all that refs, reflogs and index name, its trees are the old ones without the item."""
    rewriter = rewriter_of(filled, tmp_path / "new")
    rewriter.build()
    head = filled.git("rev-parse", "HEAD").strip()
    listed = filled.git("ls-tree", "-r", "--name-only", rewriter.mapped[head], GIT_DIR=str(tmp_path / "new"))
    assert ITEM not in listed
    assert listed.count("\n") == 4
    assert rewriter.commits == 5


def test_commits_before_the_item_keep_their_ids(filled: Any, tmp_path: Path) -> None:
    """Only commits that hold the item, and those after them, change."""
    rewriter = rewriter_of(filled, tmp_path / "new")
    first, *later = filled.git("rev-list", "--reverse", "HEAD").split()
    assert first not in rewriter.mapped
    assert all(commit in rewriter.mapped for commit in later)


def test_a_rewriting_that_loses_another_file_is_refused(
    filled: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken on purpose: a tree that loses more than the item does not pass the comparison."""

    def greedy(data: bytes, *arguments: object) -> bytes:
        rows = list(entries(edit_tree(data, *arguments)))  # type: ignore[arg-type]
        return b"".join(b"%s %s\0%s" % row for row in rows if row[1] != b"n0.yaml")

    monkeypatch.setattr(rewriting, "edit_tree", greedy)
    with pytest.raises(EraseRefused, match="more than"):
        rewriter_of(filled, tmp_path / "new").build()


def test_a_rewriting_that_loses_an_object_is_refused(filled: Any, tmp_path: Path) -> None:
    """Broken on purpose: git packs no history in which something is missing."""
    rewriter = rewriter_of(filled, tmp_path / "new")
    rewriter._waiting.popitem()
    with pytest.raises(GitFailed):
        rewriter.build()


def test_nothing_of_the_old_repository_changes_while_the_new_one_is_built(filled: Any, tmp_path: Path) -> None:
    """Up to the swap every file of the git folder is as it was."""

    def state() -> dict[str, bytes]:
        git_dir = filled.root / ".git"
        return {str(path): path.read_bytes() for path in sorted(git_dir.rglob("*")) if path.is_file()}

    filled.repository.head()
    before = state()
    rewriter_of(filled, tmp_path / "new").build()
    assert state() == before
