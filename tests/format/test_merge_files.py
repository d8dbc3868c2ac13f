"""Files: two versions of a memory file become one that is always valid (K4, B3)."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from memfs.format import yaml_text
from memfs.format.codec import Codec
from memfs.format.field_merge import FieldConflict
from memfs.format.file_merge import FileMerge, FileMerger
from memfs.format.schema import Schemas
from memfs.model.kinds import BUILT_IN, Kind, KindTable, Layer

CODEC = Codec(Schemas(), KindTable())
MERGER = FileMerger(CODEC)
ITEM = "ContextMemory/memories/semantic/2026-03/x.yaml"
RULE = "ContextMemory/memories/rule/2026-03/x.yaml"
STATE = "ContextMemory/iterations/iteration_001"
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def merged(base: str | None, ours: str | None, theirs: str | None, path: str = ITEM, **how: Any) -> FileMerge:
    """The versions, joined; the same with the sides exchanged, unless one is preferred."""
    versions = [None if one is None else one.encode() for one in (base, ours, theirs)]
    joined = MERGER.merge(path, *versions, **how)
    if not joined.whole and how.get("prefer") != "ours":
        assert MERGER.merge(path, versions[0], versions[2], versions[1], **how) == joined
    return joined


def text(joined: FileMerge) -> str:
    """The bytes of a valid result as text."""
    assert joined.data is not None
    assert not joined.whole
    return joined.data.decode()


# -- items --------------------------------------------------------------------------------------------------------
def test_k4_what_each_side_changed_is_in_the_result() -> None:
    """Fields, lines of the content, tags and free facts are joined; layout and comments stay."""
    base = "# heading\ntitle: Plan  # short\ntags: [a, b]\ncontent: |\n  one\n  two\n  three\nmetadata:\n  n: 1\n"
    ours = base.replace("Plan", "Our plan").replace("[a, b]", "[b, c]").replace("  one\n", "  ONE\n")
    theirs = base.replace("[a, b]", "[a, b, d]").replace("  three\n", "  three\n  four\n") + "  m: 2\nstatus: done\n"

    joined = merged(base, ours, theirs)

    assert joined.conflicts == ()
    assert text(joined) == (
        "# heading\ntitle: Our plan  # short\ntags: [b, d, c]\ncontent: |\n  ONE\n  two\n  three\n  four\n"
        "metadata:\n  n: 1\n  m: 2\nstatus: done\n"
    )


def test_k4_what_cannot_be_joined_is_in_the_item_as_a_conflict() -> None:
    """The later version's value wins; the other one is kept beside it, with who wrote it and when they met."""
    base = "title: a\ncontent: |\n  x\n  y\n  z\nupdated: '2026-03-01'\n"
    ours = base.replace("title: a", "title: ours").replace("  y\n", "  Y\n").replace("03-01", "03-02")
    theirs = base.replace("title: a", "title: theirs").replace("  y\n", "  why\n").replace("03-01", "03-03")
    theirs += "origin:\n  agent: zoe\n"

    joined = merged(base, ours, theirs)

    assert joined.recorded
    assert joined.conflicts == (
        FieldConflict(field="title", kept="theirs", lost="ours"),
        FieldConflict(field="content", kept="x\nwhy\nz\n", lost="x\nY\nz\n"),
    )
    assert text(joined) == (
        "title: theirs\ncontent: |\n  x\n  why\n  z\nupdated: '2026-03-03'\norigin:\n  agent: zoe\nconflicts:\n"
        "- field: title\n  kept: theirs\n  lost: ours\n  time: '2026-03-03T00:00:00Z'\n"
        "- field: content\n  kept: why\n  lost: 'Y'\n  part: true\n  time: '2026-03-03T00:00:00Z'\n"
    )
    item = CODEC.read(text(joined).encode(), ITEM, NOW)
    assert [one.lost for one in item.conflicts] == ["ours", "Y"]


def test_k4_a_later_merge_decides_about_no_earlier_conflict() -> None:
    """What was not kept waits on when a third version, whose writer knew neither, gives the field another value."""
    base = "title: a\nmetadata:\n  l: [m]\ncontent: |\n  x\n  y\n  z\nupdated: '2026-03-01'\n"
    one = base.replace("title: a", "title: one").replace("  y\n", "  one\n").replace("03-01", "03-03")
    two = base.replace("title: a", "title: two").replace("  y\n", "  two\n").replace("03-01", "03-02")
    three = base.replace("title: a", "title: three").replace("  y\n", "  three\n").replace("03-01", "03-04")
    both = text(merged(base, one, two))
    edited = one.replace("title: one", "title: two").replace("  one\n", "  y3\n").replace("03-03", "03-05")
    seen = both.replace("title: one", "title: seen")

    def conflicts(data: str) -> list[tuple[str, object, object]]:
        return [(each["field"], each["kept"], each["lost"]) for each in yaml_text.load(data)["conflicts"]]

    first = [("title", "one", "two"), ("content", "one", "two")]
    assert conflicts(both) == first
    assert sorted(conflicts(text(merged(base, both, three)))) == [
        ("content", "three", "one"),
        ("content", "three", "two"),
        ("title", "three", "one"),
        ("title", "three", "two"),
    ]
    assert sorted(conflicts(text(merged(base, seen, three)))) == [
        ("content", "three", "one"),
        ("content", "three", "two"),
        ("title", "one", "two"),
        ("title", "three", "seen"),
    ]
    assert conflicts(text(merged(one, both, edited))) == [("content", "y3", "two")]
    assert conflicts(text(merged(both, seen, both))) == first
    assert conflicts(text(merged(one, seen, both.replace("updated: '2026-03-03", "updated: '2026-03-04")))) == first


def test_k4_the_writer_of_what_gave_way_is_named() -> None:
    """It is the losing version's agent or speaker."""
    base, ours, theirs = "title: a\n", "title: b\norigin: {agent: coder}\n", "title: c\nupdated: 2026-03-01\n"

    assert yaml_text.load(text(merged(base, ours, theirs)))["conflicts"][0]["by"] == "coder"
    spoken = ours.replace("agent", "speaker")
    assert yaml_text.load(text(merged(base, spoken, theirs)))["conflicts"][0]["by"] == "coder"
    named = yaml_text.load(text(merged(base, ours.replace("coder", '"Ada  L."'), theirs)))["conflicts"]
    assert named == [{"field": "title", "kept": "c", "lost": "b", "by": "Ada L.", "time": "2026-03-01T00:00:00Z"}]


def test_k4_where_a_removal_gave_way_its_writer_is_named() -> None:
    """A field removed on one side and changed on the other, also where that was the later version."""
    base = "title: a\nstatus: open\n"
    ours = "title: a\nupdated: 2026-03-01\norigin: {agent: remover}\n"

    joined = yaml_text.load(text(merged(base, ours, "title: a\nstatus: done\n")))

    assert joined["status"] == "done"
    assert joined["conflicts"] == [{"field": "status", "kept": "done", "by": "remover", "time": "2026-03-01T00:00:00Z"}]


def test_k4_versions_that_are_equal_or_unchanged_are_taken_byte_for_byte() -> None:
    """Nothing is parsed for it, so that even a broken file passes."""
    for odd in ("title:  'a'   # odd\n", "<<<<<<< x\n", "\0"):
        assert merged("title: b\n", odd, odd).data == odd.encode()
        assert merged("title: b\n", "title: b\n", odd).data == odd.encode()
        assert merged("title: b\n", odd, "title: b\n").data == odd.encode()
    assert merged("title: a\n", None, None) == FileMerge(data=None)
    assert merged("title: a\n", "title: a\n", None) == FileMerge(data=None)
    assert merged(None, "title: a\n", None).data == b"title: a\n"


def test_k4_an_edit_wins_over_a_removal_and_says_so() -> None:
    """The item stays with a record about the whole of it; a file that cannot tell leaves it to the caller."""
    joined = merged("title: a\n", "title: b # c\nupdated: 2026-03-01\n", None)

    assert joined.conflicts == (FieldConflict(field="", kept="edited", lost="deleted"),)
    assert text(joined) == (
        'title: b # c\nupdated: 2026-03-01\nconflicts:\n- field: ""\n  kept: edited\n  lost: deleted\n'
        "  time: '2026-03-01T00:00:00Z'\n"
    )
    state = merged("{}", None, '{"a": 1}', f"{STATE}/hypotheses/h.json")
    full = merged("title: a\n", None, f"title: a\ncontent: {'x' * (1024 * 1024 - 20)}\n")
    for one in (state, full):
        assert (one.recorded, len(one.conflicts)) == (False, 1)
    assert state.data == b'{"a": 1}'
    assert full.data is not None
    assert len(full.data) <= 1024 * 1024


def test_k4_a_preferred_side_wins_in_all_that_clashes() -> None:
    """For undoing: ours wins whatever the times say, and its removals count, too (B3)."""
    base = "title: a\nstatus: open\nupdated: 2026-03-01\nimportance: 3\n"
    ours = "title: ours\nupdated: 2026-03-01\nimportance: 3\n"
    theirs = "title: theirs\nstatus: done\nupdated: 2026-03-09\nimportance: 1\n"

    joined = merged(base, ours, theirs, prefer="ours", record=False)

    assert yaml_text.load(text(joined)) == {"title": "ours", "updated": "2026-03-09", "importance": 1}
    assert [one.field for one in joined.conflicts] == ["title", "status"]
    assert not joined.recorded
    gone = merged(base, None, theirs, prefer="ours")
    assert (gone.data, gone.conflicts[0].lost) == (None, "edited")


def test_k4_two_items_of_one_name_that_began_from_nothing_are_joined() -> None:
    """``created`` is the earlier; what both have at the same place is there once."""
    joined = merged(
        None,
        "title: a\ncontent: |\n  one\n  two\ncreated: 2026-03-02\nupdated: 2026-03-02\ntags: [x]\n",
        "title: a\ncontent: |\n  one\n  two\n  three\ncreated: 2026-03-01\nupdated: 2026-03-01\ntags: [y]\n",
    )

    values = yaml_text.load(text(joined))
    assert (values["content"], values["tags"]) == ("one\ntwo\nthree\n", ["x", "y"])
    assert (values["created"], values["updated"]) == ("2026-03-01", "2026-03-02")
    assert joined.conflicts == ()


def test_k4_counters_of_a_rule_count_what_both_counted() -> None:
    """Support and objections add up (``sum``), confidence is the higher."""
    base = "title: r\ndata:\n  action: do\n  support: 5\n  against: 1\n  confidence: 0.5\n"
    ours = base.replace("support: 5", "support: 7").replace("0.5", "0.6")
    theirs = base.replace("support: 5", "support: 6").replace("against: 1", "against: 2").replace("0.5", "0.7")

    data = yaml_text.load(text(merged(base, ours, theirs, RULE)))["data"]

    assert data == {"action": "do", "support": 8, "against": 2, "confidence": 0.7}


# -- always valid -------------------------------------------------------------------------------------------------
def test_k4_what_is_too_much_together_leaves_the_later_versions_value() -> None:
    """Two valid lists of tags whose union is too long: one wins, the other is a conflict."""
    base = "title: a\ntags: [z]\n"
    ours = base.replace("[z]", f"[{', '.join(f'o{n}' for n in range(200))}]") + "updated: 2026-03-02\n"
    theirs = base.replace("[z]", f"[{', '.join(f't{n}' for n in range(200))}]") + "status: done\n"

    joined = merged(base, ours, theirs)

    values = yaml_text.load(text(joined))
    assert (len(values["tags"]), values["tags"][0], values["status"]) == (200, "o0", "done")
    assert [one.field for one in joined.conflicts] == ["tags"]
    assert CODEC.errors(text(joined).encode(), ITEM) == []


def test_k4_a_count_that_would_fall_below_zero_is_a_conflict() -> None:
    """Both took back two of three."""
    base = "title: r\ndata:\n  action: do\n  support: 3\n"
    ours, theirs = (base.replace("support: 3", "support: 1") + end for end in ("", "status: x\n"))

    joined = merged(base, ours, theirs, RULE)

    assert yaml_text.load(text(joined))["data"]["support"] == 1
    assert [one.field for one in joined.conflicts] == ["data"]


def test_k4_long_values_that_lose_stay_in_history() -> None:
    """A record names the digest of the version that has them, and the file stays within its limit."""
    ours, theirs = (f"title: a\ncontent: {letter * 700_000}\n" for letter in "yz")

    joined = merged("title: a\ncontent: x\n", ours, theirs)

    values = yaml_text.load(text(joined))
    assert values["content"][0] == "z"
    assert values["conflicts"] == [{"field": "content", "lost_sha256": hashlib.sha256(ours.encode()).hexdigest()}]
    assert CODEC.errors(text(joined).encode(), ITEM) == []


@pytest.mark.parametrize(("room", "record"), [(800, "lost_sha256"), (20, None)])
def test_k4_a_full_item_is_joined_with_a_shorter_record_or_none(room: int, record: str | None) -> None:
    """The limit of a file holds with the records, too; the caller gets every conflict."""
    size = 1024 * 1024 - len("title: o\ncontent: \nmetadata: {a: 1}\n") - room
    base, ours, theirs = (f"title: {letter}\ncontent: {'x' * size}\nmetadata: {{a: 1}}\n" for letter in "bot")
    ours, theirs = ours.replace(": 1}", f": {'o' * 300}}}"), theirs.replace(": 1}", f": {'t' * 300}}}")
    if room < 300:
        ours, theirs = ours.replace("o" * 300, "o"), theirs.replace("t" * 300, "t")

    joined = merged(base, ours, theirs)

    records = yaml_text.load(text(joined)).get("conflicts", [])
    assert len(text(joined)) <= 1024 * 1024
    assert all(record in one and "lost" not in one for one in records)
    assert [one.field for one in joined.conflicts] == ["title", "metadata.a"]
    assert joined.recorded == bool(records) == (record is not None)


def test_k4_no_item_drowns_in_records() -> None:
    """More than 64 conflicts leave 63, and one for the rest."""
    base, ours, theirs = (
        "title: a\nmetadata:\n" + "".join(f"  k{n}: {side}{n}\n" for n in range(100)) for side in ("b", "o", "t")
    )

    joined = merged(base, ours, theirs)

    records = yaml_text.load(text(joined))["conflicts"]
    assert (len(joined.conflicts), len(records), records[0]["field"]) == (100, 64, "")
    assert records[0]["lost_sha256"] == hashlib.sha256(ours.encode()).hexdigest()
    again = yaml_text.load(text(merged(text(joined), text(joined) + "status: x\n", text(joined) + "pinned: true\n")))
    assert again["conflicts"] == records
    ours, theirs = (
        "title: a\nconflicts:\n" + "".join(f"- {{field: k{n}, kept: a, lost: {side}}}\n" for n in range(40))
        for side in ("o", "t")
    )
    both = yaml_text.load(text(merged("title: a\n", ours, theirs)))["conflicts"]
    assert (len(both), both[0]["lost"], {one["lost"] for one in both[1:]}) == (64, "further fields", {"o", "t"})


def test_k4_an_invalid_version_is_healed_or_left_to_the_other() -> None:
    """A field the schema refuses does not get into the result while the other version is valid."""
    joined = merged("title: a\n", "title: b\nimportance: 99\nupdated: 2026-03-02\n", "title: a\nstatus: done\n")

    assert yaml_text.load(text(joined)) == {
        "title": "a",
        "status": "done",
        "conflicts": [{"field": "", "kept": "one version", "lost": "another version", "time": "2026-03-02T00:00:00Z"}],
    }
    mended = merged("title: a\nimportance: 99\n", "title: b\nimportance: 99\n", "title: a\nimportance: 9\n")
    assert yaml_text.load(text(mended)) == {"title": "b", "importance": 9}


def test_k4_the_type_is_that_of_the_folder() -> None:
    """A version that was moved between folders may name another type."""
    joined = merged("type: rule\ntitle: a\n", "type: rule\ntitle: b\n", "type: semantic\ntitle: a\nstatus: x\n")

    assert yaml_text.load(text(joined)) == {"type": "semantic", "title": "b", "status": "x"}
    assert joined.conflicts == ()


def test_k4_what_cannot_be_read_gets_markers_where_lines_clash() -> None:
    """Both versions are in the file as git would leave it, and the reason names the version and its line."""
    joined = merged("title: a\n", "title: b\n", "title: [c\n")

    assert (joined.whole, joined.conflicts) == (True, ())
    assert joined.data == b"<<<<<<< ours\ntitle: b\n=======\ntitle: [c\n>>>>>>> theirs\n"
    assert joined.reason.startswith("theirs: line 2: ")
    longer = merged("title: a\n", "title: b\n", "title: [c\n", marker_size=9)
    assert longer.data == b"<<<<<<<<< ours\ntitle: b\n=========\ntitle: [c\n>>>>>>>>> theirs\n"
    neither = merged("title: a\n", "title: a\nmisspelt: 1\n", "title: b\nalso_misspelt: 1\n")
    assert (neither.whole, neither.reason) == (True, "neither version is valid")


def test_k4_a_base_that_cannot_be_read_counts_as_none() -> None:
    """What both have is kept; nothing counts as removed."""
    joined = merged("title: [\n", "title: a\ntags: [x]\n", "title: a\nstatus: done\n")

    assert yaml_text.load(text(joined)) == {"title": "a", "tags": ["x"], "status": "done"}


# -- comments and layout ------------------------------------------------------------------------------------------
def test_k4_a_clean_text_merge_is_taken_as_it_is() -> None:
    """Comments, order, quotes and blank lines of both sides stay where they are."""
    base = "# top\ntitle: 'a'\n\n# about tags\ntags:\n  - x   # first\nstatus: open\n"
    ours = base.replace("'a'", '"b" # ours').replace("# top", "# our top")
    theirs = base.replace("status: open\n", "# closing\nstatus: 'done'   # as agreed\n")

    assert text(merged(base, ours, theirs)) == (
        '# our top\ntitle: "b" # ours\n\n# about tags\ntags:\n  - x   # first\n'
        "# closing\nstatus: 'done'   # as agreed\n"
    )


def test_k4_where_lines_touch_the_text_of_one_side_stays_with_its_comments() -> None:
    """What the other side changed is put into it."""
    base = "title: a\ntags: [x]\nmetadata:\n  n: 1\n  m: 1\n"
    ours = "# why\ntitle: a\nupdated: 2026-03-02\ntags: [x, w]  # more\nmetadata:\n  n: 2\n  m: 1\n# the end\n"
    theirs = base.replace("[x]", "[z, x]").replace("m: 1", "m: 2")

    assert text(merged(base, ours, theirs)) == (
        "# why\ntitle: a\nupdated: 2026-03-02\ntags: [x, w, z]  # more\nmetadata:\n  n: 2\n  m: 2\n# the end\n"
    )


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_k4_line_endings_and_byte_order_mark_stay(newline: str, mark: str) -> None:
    """Those of the version whose text it is."""
    base, ours, theirs = (
        mark + one.replace("\n", newline)
        for one in (
            "title: a\ntags: [x]\n",
            "title: b\ntags: [x, w]\nupdated: 2026-03-01\n",
            "title: a\n# c\ntags: [z]\n",
        )
    )

    joined = text(merged(base, ours, theirs))

    assert joined == (mark + "title: b\ntags: [w, z]\nupdated: 2026-03-01\n").replace("\n", newline)


def test_k4_items_in_json_and_of_own_kinds_are_joined_by_their_rules() -> None:
    """JSON keeps its indentation; a kind from ``kinds.yaml`` may say how its fields are joined."""
    body = {"type": "object", "properties": {"seen": {"type": "integer", "x-merge": "sum"}}}
    kind = Kind(name="bird", layer=Layer.SEMANTIC, description="A bird.", folder="memories/bird", body="bird")
    merger = FileMerger(Codec(Schemas({"bird": body}), KindTable([*BUILT_IN, kind])))
    base, ours, theirs = (
        json.dumps({"title": "Wren", "data": {"seen": seen}, **more}, indent=4).encode()
        for seen, more in ((3, {}), (5, {"status": "done"}), (4, {}))
    )

    joined = merger.merge("ContextMemory/memories/bird/wren.json", base, ours, theirs)

    assert joined.data is not None
    assert json.loads(joined.data) == {"title": "Wren", "data": {"seen": 6}, "status": "done"}
    assert joined.data.startswith(b'{\n    "title"')


def test_k4_what_was_pruned_is_joined_as_an_item_of_its_kind() -> None:
    """It keeps the bytes of an item, in a folder that is not a kind's."""
    path = "ContextMemory/archive/pruned/rule/x.yaml"

    joined = merged("title: a\ntags: [x]\n", "title: a\ntags: [x, y]\n", "title: a\ntags: [x, z]\n", path)

    assert yaml_text.load(text(joined))["tags"] in (["x", "y", "z"], ["x", "z", "y"])


# -- documents ----------------------------------------------------------------------------------------------------
def test_b3_state_documents_are_joined_by_their_rules() -> None:
    """Counters add up, the later document's value wins where one must, and the caller gets the conflict to record."""
    base = {"id": "h", "wins": 1, "matches": 2, "state": "new", "timestamp": "2026-03-01T10:00:00Z"}
    ours = {**base, "wins": 2, "matches": 3, "state": "good", "timestamp": "2026-03-01T11:00:00Z"}
    theirs = {**base, "wins": 2, "matches": 4, "state": "bad", "timestamp": "2026-03-01T12:00:00Z", "parents": ["g"]}
    versions = (json.dumps(one, indent=2) + "\n" for one in (base, ours, theirs))

    joined = merged(*versions, path=f"{STATE}/hypotheses/h.json")

    assert json.loads(text(joined)) == {**theirs, "wins": 3, "matches": 5}
    assert joined.conflicts == (FieldConflict(field="state", kept="bad", lost="good"),)
    assert not joined.recorded
    ours["timestamp"] = "2026-03-01T13:00:00Z"
    later = merged(*map(json.dumps, (base, ours, theirs)), path=f"{STATE}/hypotheses/h.json")
    assert [one.kept for one in later.conflicts if one.field == "state"] == ["good"]


def test_b3_sealed_files_are_taken_whole_and_made_ones_silently() -> None:
    """A manifest is valid in its own bytes only; aggregates and copies of schemas are made again anyway."""
    for path in (
        "ContextMemory/checkpoints/ckpt_20260301_1000/manifest.json",
        "ContextMemory/archive/2026-03.index.json",
    ):
        joined = merged('{"a": 1}\n', '{"a": 2}\n', '{"a": 3}\n', path)
        assert joined == FileMerge(
            data=b'{"a": 3}\n', conflicts=(FieldConflict(field="", kept="one version", lost="another version"),)
        )
    for path in ("ContextMemory/aggregates/pattern_history.json", "ContextMemory/.schemas/item.schema.json"):
        assert merged('{"a": 1}\n', '{"a": 2}\n', '{"a": 3}\n', path) == FileMerge(data=b'{"a": 3}\n')


def test_b3_configuration_and_context_are_joined_key_by_key() -> None:
    """A person's comments stay."""
    path = "ContextMemory/context/session.yaml"

    joined = merged("a: 1\nb: 1\n", "a: 2 # two\nb: 1\n", "a: 1\nb: 3\nc: {d: 1}\n", path)

    assert text(joined) == "a: 2 # two\nb: 3\nc:\n  d: 1\n"
    quotas = "ContextMemory/configuration/system_config.json"
    versions = (
        json.dumps({"quotas": {"total_bytes": total, "items_bytes": items}})
        for total, items in ((1, 1), (2, 1), (1, 2))
    )
    assert json.loads(text(merged(*versions, path=quotas)))["quotas"] == {"total_bytes": 2, "items_bytes": 2}


# -- text ---------------------------------------------------------------------------------------------------------
def test_k4_settings_are_joined_by_lines() -> None:
    """What both sides changed in ``memfs.toml``, or on touching lines, needs a person."""
    base = '[index]\nengine = "whoosh" # fast\nstem = true\n[history]\ncommit = "interval"\n'
    ours = base.replace('"whoosh"', '"sqlite"')

    joined = merged(base, ours, base.replace('"interval"', '"each"'), "memfs.toml")
    assert text(joined) == ours.replace('"interval"', '"each"')
    clash = merged(base, ours, base.replace('"whoosh"', '"other"'), "memfs.toml")
    assert clash.whole
    assert (clash.data or b"").count(b"\n<<<<<<< ours\n") == 1


def test_k4_toml_that_lines_would_break_is_not_made() -> None:
    """One setting written at two places by two sides is a clash, though no lines touch."""
    base = "[a]\nx = 1\ny = 1\nz = 1\n"

    joined = merged(base, base.replace("[a]\n", "[a]\nw = 1\n"), base + "w = 2\n", "memfs.toml")

    assert (joined.whole, joined.reason) == (True, "what the lines of both come to is not TOML")
    assert (joined.data or b"").startswith(b"<<<<<<< ours\n[a]\nw = 1\n")


def test_k4_other_files_are_joined_by_lines_and_bytes_are_left_alone() -> None:
    """Templates and git's own files get markers where lines clash; what is not text is not touched."""
    path = "ContextMemory/configuration/notes.md"

    assert merged("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", path).data == b"A\nb\nC\n"
    clash = merged("a\n", "b\n", "c\n", path, marker_size=9)
    assert (clash.whole, (clash.data or b"").splitlines()[0]) == (True, b"<<<<<<<<< ours")
    assert merged("a\n", "b\0\n", "c\n", path).data == b"b\0\n"
