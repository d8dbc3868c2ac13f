"""The small pure parts: configuration files, trees, packs, identities, messages, dates."""

from __future__ import annotations

import random
import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memfs.errors import StorageIO
from memfs.fs import io
from memfs.fs.journal import Writer
from memfs.git import objects
from memfs.git.commit_object import (
    MEMFS,
    Person,
    agent,
    compose,
    encode_commit,
    identity,
    parse_commit,
    sanitised,
)
from memfs.git.layout import read_config, truth
from memfs.git.objects import (
    EMPTY_TREE,
    Object,
    TreeEditor,
    add,
    encode_tree,
    pack,
    parse_tree,
    read_loose,
    write_loose,
)
from memfs.git.repository import parse_moment
from memfs.model.item import object_id
from memfs.model.time import given_time

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ADA = Person("Ada", "ada@example.org")


def test_configuration_is_read_as_git_reads_it(tmp_path):
    """Sections, subsections, quotes, comments, continuations and keys without a value."""
    file = tmp_path / "config"
    file.write_text(
        '[core]\n\tbare = no # comment\n\tworktree = "a; b"\n[remote "Or\\"igin"]\nurl=x\\\ny\n'
        "[extensions] worktreeConfig\n; note\n[a.B]\n\tC = 1\n\tc = 2\n"
    )
    found = read_config(file)
    assert found == {
        "core.bare": "no",
        "core.worktree": "a; b",
        'remote.Or"igin.url': "xy",
        "extensions.worktreeconfig": "true",
        "a.b.c": "2",
    }
    assert truth(found, "extensions.worktreeconfig")
    assert not truth(found, "core.bare")


def test_trees_survive_a_round_trip_in_gits_order():
    """Folders sort as if they ended with a slash."""
    made = {}
    blob = add(made, "blob", b"x")
    root = TreeEditor(lambda name: {}, made).apply(None, {(b"a", b"x"): blob, (b"a.b",): blob, (b"a-b",): blob})
    assert list(parse_tree(made[root].data)) == [b"a-b", b"a.b", b"a"]
    assert encode_tree(parse_tree(made[root].data)) == made[root].data
    assert object_id("tree", b"") == EMPTY_TREE


def test_only_changed_trees_are_made_and_empty_ones_vanish():
    """A change makes the trees above it; removing what is not there changes nothing; no path, no tree."""
    made = {}
    editor = TreeEditor(lambda name: {}, made)
    blob = add(made, "blob", b"x")
    root = editor.apply(None, {(b"a", b"b", b"c"): blob, (b"z", b"y"): blob})
    count = len(made)
    assert editor.apply(root, {(b"z", b"none"): None, (b"q", b"r"): None, (b"a",): None}) == root
    assert len(made) == count
    assert editor.apply(root, {(b"a", b"b", b"c"): None, (b"z", b"y"): None}) is None


def test_random_edits_agree_with_a_plain_mapping():
    """Any sequence of sets and removals gives the tree of the mapping it leaves."""
    rng = random.Random(7)
    made, plain, root = {}, {}, None
    editor = TreeEditor(lambda name: {}, made)
    for _ in range(60):
        changes = {}
        for _ in range(rng.randint(1, 4)):
            parts = tuple(rng.choice([b"a", b"b", b"c"]) + b"." * depth for depth in range(rng.randint(1, 3)))
            parts = (*parts, b"file%d" % rng.randint(0, 3))
            changes[parts] = rng.choice([None, add(made, "blob", bytes([rng.randint(0, 9)]))])
        root = editor.apply(root, changes)
        plain = {path: blob for path, blob in (plain | changes).items() if blob}
        found = dict(objects.walk(editor.tree, root)) if root else {}
        assert {tuple(path.split(b"/")): entry.id for path, entry in found.items()} == plain
        fresh = TreeEditor(lambda name: {}, made).apply(None, plain) if plain else None
        assert fresh == root


def test_a_pack_is_what_git_indexes(world):
    """Sizes around the header's limits survive git's own reading."""
    made = {}
    names = [add(made, "blob", b"x" * size) for size in (0, 1, 15, 16, 2047, 2048, 300_000)]
    world.repository.git.run("index-pack", "--stdin", "--strict", data=pack(made))
    assert [len(world.repository.blob(name)) for name in names] == [0, 1, 15, 16, 2047, 2048, 300_000]


def test_a_message_gets_its_trailers_in_one_paragraph():
    """Trailers are one last paragraph, each once; control characters and line breaks cannot forge one."""
    writers = [Writer(agent="a\nMemfs-Agent: forged", session="s"), Writer(agent="b", session="s")]
    text = compose("Say\x00 so\n\nReviewed-by: Ada\n", writers)
    assert text == "Say  so\n\nReviewed-by: Ada\nMemfs-Agent: a Memfs-Agent: forged\nMemfs-Agent: b\nMemfs-Session: s\n"
    assert compose("", []) == "Change memories\n"


def test_a_commit_is_read_back():
    """What is written is read: people, time, subject, body, trailers."""
    text = compose("Subject\n\nBody one.\n\nBody two.", [Writer(agent="x")])
    read = parse_commit(encode_commit(EMPTY_TREE, ["1" * 40], agent("x"), ADA, NOW, text))
    assert (read.tree, read.parents, read.author, read.committer, read.time) == (
        EMPTY_TREE,
        ("1" * 40,),
        agent("x"),
        ADA,
        NOW,
    )
    assert (read.subject, read.body, read.trailers) == (
        "Subject",
        "Body one.\n\nBody two.",
        {"Memfs-Agent": ("x",)},
    )


def test_strange_commits_are_read():
    """Other encodings, broken author lines and impossible times do not stop a log."""
    people = "author J\xf6rg <j@x> 99999999999999999 +0000\ncommitter nobody\n"
    head = f"tree {EMPTY_TREE}\n{people}encoding latin1\ngpgsig a\n b\n"
    read = parse_commit(head.encode("latin1") + b"\nGr\xfc\xdfe\n")
    assert read.subject == "Grüße"
    assert read.committer.name == "nobody"
    assert read.time == datetime.fromtimestamp(0, UTC)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("claude", "claude <claude@agent.memfs>"),
        ("Claude Code\n<x>", "Claude Code x <claude-code-x@agent.memfs>"),
        ("Größe", "Größe <gr-e@agent.memfs>"),
        ("日本", "日本 <agent@agent.memfs>"),
        (" .<>\n", "agent <agent@agent.memfs>"),
    ],
)
def test_an_agents_name_cannot_break_the_author_line(name, line):
    """Angle brackets, line breaks and punctuation at the ends are taken out; the address is plain."""
    assert str(agent(name)) == line


def test_a_persons_identity_comes_in_gits_order():
    """Environment, then role settings, then user settings, then memfs; each part by itself."""
    settings = {"user.name": "U", "user.email": "u@x", "author.name": "A"}
    found = identity({"GIT_COMMITTER_EMAIL": "c@x"}, settings)
    assert (str(found.author), str(found.committer)) == ("A <u@x>", "U <c@x>")
    assert identity({}, {}).committer == MEMFS
    assert identity({"GIT_AUTHOR_NAME": "A"}, {}).committer == Person("A", MEMFS.email)
    assert identity({"EMAIL": "me@x"}, {}).author == Person("me", "me@x")
    assert sanitised("\ud800 a,") == "? a"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("3 days ago", NOW - timedelta(days=3)),
        ("an hour ago", NOW - timedelta(hours=1)),
        ("2.weeks.ago", NOW - timedelta(weeks=2)),
        ("yesterday", given_time((NOW.astimezone() - timedelta(days=1)).date().isoformat())),
        ("7d", NOW - timedelta(days=7)),
        ("2026-01-02", datetime(2026, 1, 2, tzinfo=UTC)),
        ("2026-01-02T03:04+01:00", datetime(2026, 1, 2, 2, 4, tzinfo=UTC)),
        ("999999 years ago", None),
        ("soon", None),
        ("@123", None),
    ],
)
def test_dates_and_ages_are_read(text, moment):
    """ISO dates and ages name a moment; anything else names none and never becomes "now"."""
    assert parse_moment(text, NOW) == moment


@pytest.mark.parametrize("synced", [False, True], ids=["before the file is made", "before the folder is synced"])
def test_36_a_gc_that_removes_folders_of_objects_is_outlasted(tmp_path, synced):
    """git gc packs what no branch holds yet and removes the folder: what was in it is written again."""
    wanted = {object_id("blob", data): Object("blob", data) for data in (b"one", b"two", b"three")}
    removed = []

    def gc(name, path):
        place = Path(path) if synced else Path(path).parent
        if name == "open" and place.parent == tmp_path and place.is_dir() and removed.count(place) < 3:
            shutil.rmtree(place)
            removed.append(place)

    io.set_hook(gc)
    try:
        write_loose(tmp_path, wanted)
    finally:
        io.set_hook(None)
    assert len(removed) == 9
    assert {name: read_loose(tmp_path, name) for name in wanted} == wanted


def test_36_a_gc_without_an_end_is_reported(tmp_path):
    """Folders that are always gone again are an error that says so."""
    io.set_hook(lambda name, path: shutil.rmtree(path) if name == "open" and len(Path(path).name) == 2 else None)
    try:
        with pytest.raises(StorageIO, match="removed again and again"):
            write_loose(tmp_path, {object_id("blob", b"one"): Object("blob", b"one")})
    finally:
        io.set_hook(None)


@pytest.mark.parametrize("line", ["<!--" * 50_000, "a <" * 50_000 + "b> 1 +0000", "<" * 200_000 + "> x"])
def test_no_name_in_a_commit_takes_long_to_read(line: str) -> None:
    """A commit is read in time that grows with its length, no matter who wrote it (B7)."""
    data = f"tree {'a' * 40}\nauthor {line}\ncommitter A <a@b> 1700000000 +0000\n\nx\n".encode()
    began = time.process_time()
    parse_commit(data)
    assert time.process_time() - began < 5
