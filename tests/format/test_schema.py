"""Schemas of items and documents, and what their errors say (K3)."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import pytest

from memfs.errors import SettingInvalid
from memfs.format import schema as schema_module
from memfs.format.schema import Schemas
from memfs.model.kinds import BUILT_IN, KindTable

KINDS = KindTable()
DATE = "write it like 2026-03-01 or 2026-03-01T10:00:00Z"
LINE = "write one line of at most 300 characters"
OTHER = "write the other item's id: its file name without the ending"
SOCIAL = {"layer": "semantic", "description": "x"}
COUNT = "write a whole number of 0 or more"
EARLY = "0001-01-01T00:00:00+05:00"
PHASES = "expand, differentiate, refine, retrospect"
GOOD: dict[str, Any] = {
    "title": "Use PostgreSQL",
    "content": "We chose it.",
    "tags": ["database", "décision"],
    "timestamp": "2026-03-01",
    "created": "2026-03-01T10:00:00Z",
    "updated": "2026-03-01T10:00:00.123456+02:00",
    "origin": {"agent": "Evolution Agent", "session": "s", "sequence": 0, "phase": "refine"},
    "trust": "agent",
    "importance": 2.5,
    "pinned": True,
    "status": "accepted",
    "expires": "2027-01-01 10:00",
    "supersedes": ["old-one"],
    "links": [{"to": "other.item", "relation": "contradicts"}],
    "context": {"project": "shop", "deep": {"list": [1, None, {"x": 2.5}]}},
    "metadata": {"anything": ["goes"]},
    "data": {"own": {"shape": True}},
}


def errors_of(mapping: dict[str, Any], kind: str = "semantic") -> list[tuple[str, str, str]]:
    """Field, message and hint of each error."""
    found = Schemas().check_item(mapping, KINDS.get(kind))
    return [(".".join(map(str, error.path)), error.message, error.hint) for error in found]


@pytest.mark.parametrize("kind", [kind.name for kind in BUILT_IN if not kind.body])
def test_a_full_item_is_valid_for_every_kind(kind: str) -> None:
    """Every field a file may have is accepted."""
    assert errors_of(GOOD, kind) == []


@pytest.mark.parametrize(
    ("change", "field", "message", "hint"),
    [
        ({"importance": "high"}, "importance", '"high" is not a number', "write a number from 0 to 10"),
        ({"importance": 11}, "importance", "11 is out of range", "write a number from 0 to 10"),
        ({"importance": None}, "importance", "is empty", "write a number from 0 to 10, or remove the line"),
        ({"title": 1.1}, "title", "1.1 looks like a number, but text is wanted", 'quote it: "1.1"'),
        ({"content": True}, "content", "true looks like true or false, but text is wanted", 'quote it: "true"'),
        ({"content": None}, "content", "is empty", "write text, or remove the line"),
        ({"content": ["a"]}, "content", "there is a list where text is wanted", "write text there"),
        ({"title": "two\nlines"}, "title", '"two\\nlines" has the wrong form', LINE),
        ({"title": "x" * 301}, "title", "has 301 characters, at most 300 are allowed", LINE),
        ({"tags": "a"}, "tags", '"a" is not a list', 'write it as ["a"]'),
        ({"tags": ["a", "a"]}, "tags", '"a" is there twice', "remove one of them"),
        ({"tags": ["a", 2024]}, "tags.1", "2024 looks like a number, but text is wanted", 'quote it: "2024"'),
        ({"tags": [""]}, "tags.0", "is empty", "write one word or a few"),
        ({"trust": "humn"}, "trust", '"humn" is not one of human, reviewed, agent, tool', "did you mean 'human'?"),
        ({"trust": None}, "trust", "is empty", "write one of human, reviewed, agent, tool, or remove the line"),
        ({"created": "2024-13-45"}, "created", '"2024-13-45" is not a date or time', DATE),
        ({"created": "yesterday"}, "created", '"yesterday" is not a date or time', DATE),
        ({"created": EARLY}, "created", f'"{EARLY}" is not a date or time', DATE),
        ({"expires": "2026-W10"}, "expires", '"2026-W10" has the wrong form', DATE),
        ({"pinned": "yes"}, "pinned", '"yes" is not true or false', "write true or false"),
        ({"origin": {"sequence": -1}}, "origin.sequence", "-1 is out of range", COUNT),
        ({"origin": {"sequence": 1.5}}, "origin.sequence", "1.5 is not a whole number", COUNT),
        ({"origin": {"agnt": "x"}}, "origin.agnt", "unknown key 'agnt'", "did you mean 'agent'?"),
        ({"origin": {"phase": "refin"}}, "origin.phase", f'"refin" is not one of {PHASES}', "did you mean 'refine'?"),
        ({"origin": "Ada"}, "origin", '"Ada" is not a mapping', "write 'key: value' lines below"),
        ({"links": [{"relation": "x"}]}, "links.0", "'to' is missing", "add 'to: ...': id of the other item"),
        ({"links": [{"to": "../x"}]}, "links.0.to", '"../x" has the wrong form', OTHER),
        ({"tittle": "x"}, "tittle", "unknown key 'tittle'", "did you mean 'title'?"),
        ({"id": "x"}, "id", "unknown key 'id'", "the file's name is the id; remove this line"),
        ({"agent": "x"}, "agent", "unknown key 'agent'", "write it under 'origin'"),
        ({"zzz": 1}, "zzz", "unknown key 'zzz'", "put free facts under 'metadata'"),
        ({"metadata": []}, "metadata", "there is a list where a mapping is wanted", "write a mapping there"),
    ],
)  # fmt: skip
def test_k3_errors_say_what_is_wrong_and_what_would_be_right(
    change: dict[str, Any], field: str, message: str, hint: str
) -> None:
    """One field, one sentence, one remedy, in a person's words."""
    assert errors_of({**GOOD, **change}) == [(field, message, hint)]


def test_an_item_needs_content_or_a_title() -> None:
    """Neither is an error, either will do."""
    assert errors_of({}) == [("", "needs 'content' or 'title'", "write content, a title, or both")]
    assert errors_of({"title": "x"}) == errors_of({"content": "x"}) == []


def test_bodies_of_pattern_rule_and_convention_have_a_shape() -> None:
    """``data`` of these kinds is checked; keys beyond the shape are free."""
    assert errors_of({"content": "x", "data": {"scope": ["src/**"], "owner": "team", "own": 1}}, "convention") == []
    assert [field for field, *_ in errors_of({"content": "x", "data": {"scope": "src", "owner": 3}}, "convention")] == [
        "data.owner",
        "data.scope",
    ]
    assert errors_of({"content": "x", "data": {"confidence": 2}}, "rule")[0][0] == "data.confidence"
    assert errors_of({"content": "x", "data": {"occurrences": "3"}}, "pattern")[0][0] == "data.occurrences"


@pytest.mark.parametrize(
    ("name", "document", "field"),
    [
        ("system_config", {"format_version": "1"}, "format_version"),
        ("system_config", {"format_version": 1, "quota": {}}, "quota"),
        ("retention_policy", {"active_days": -1}, "active_days"),
        ("memory_context", {"metadata": {"type": "memry", "name": "x"}}, "metadata.type"),
        ("kinds", {"kinds": {"Social": {"layer": "semantic", "description": "x"}}}, "kinds.Social"),
        ("kinds", {"kinds": {"social": {"layer": "semantc", "description": "x"}}}, "kinds.social.layer"),
        ("kinds", {"kinds": {"social": {**SOCIAL, "folder": "../x"}}}, "kinds.social.folder"),
        ("memfs_toml", {"index": {"engine": "lucene"}}, "index.engine"),
        ("memfs_toml", {"indx": {}}, "indx"),
        ("memfs_toml", {"memory": {"automatic": "preferences"}}, "memory.automatic"),
    ],
)  # fmt: skip
def test_p5_and_m4_documents_are_strict(name: str, document: dict[str, Any], field: str) -> None:
    """Unknown keys and wrong values in configuration are errors that name the field."""
    found = Schemas().check_document(document, name)

    assert [".".join(map(str, error.path)) for error in found] == [field]


@pytest.mark.parametrize("part", ["trigger", "action"])
def test_m4_unknown_triggers_and_actions_are_errors(part: str) -> None:
    """A behaviour rule names only occasions and actions that exist."""
    rule = {"trigger": "task_completed", "action": "extract_learnings", part: "task_complete"}
    document = {"metadata": {"type": "memory", "name": "x"}, "behavior_rules": [rule]}

    (error,) = Schemas().check_document(document, "memory_context")

    assert error.path == ("behavior_rules", 0, part)
    assert "is not one of" in error.message


def test_an_unknown_schema_names_the_nearest() -> None:
    """A slip of a developer is distinguished from a slip in a file."""
    with pytest.raises(SettingInvalid, match="did you mean 'system_config'"):
        Schemas().check_document({}, "system_confg")


def corpus() -> list[dict[str, Any]]:
    """The good item with each value replaced by values of every sort, and each key removed or added."""
    made = [GOOD, {}, {"title": ""}]
    odd: list[Any] = [
        None,
        True,
        0,
        -1,
        1,
        11,
        1.0,
        1.5,
        10**18,
        "",
        "a",
        "é",
        "a\n",
        "2026-03-01",
        "2026-02-30",
        "x" * 400,
    ]
    odd += [
        [],
        {},
        ["a"],
        ["a", "a"],
        [1, 1.0],
        [True, 1],
        [{}, {}],
        {"to": "x"},
        [{"to": "x"}],
        [{"to": ""}],
        {"a": 1},
    ]

    def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        return [path, *(found for key, part in inner for found in places(part, (*path, key)))]

    for path in places(GOOD)[1:]:
        for value in [*odd, "REMOVE", "ADD"]:
            mapping = copy.deepcopy(GOOD)
            parent: Any = mapping
            for step in path[:-1]:
                parent = parent[step]
            if value == "REMOVE":
                del parent[path[-1]]
            elif value == "ADD" and isinstance(parent, dict):
                parent["unheard_of"] = 1
            else:
                parent[path[-1]] = value
            made.append(mapping)
    return made


@pytest.mark.parametrize("kind", ["semantic", "convention", "rule", "pattern"])
def test_both_validators_agree(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The quick validator and the one that explains accept and refuse the same items."""
    pytest.importorskip("jsonschema_rs")
    quick = Schemas()
    shape = quick.item_rules(KINDS.get(kind))
    decide = schema_module.quick_check(shape, {"memfs-time": schema_module._is_time})
    monkeypatch.setattr(schema_module, "quick_check", lambda _schema, _formats: None)
    monkeypatch.setattr(schema_module, "_bundled_check", cache(schema_module._bundled_check.__wrapped__))
    slow = Schemas()
    assert decide is not None

    for mapping in corpus()[len(kind) % 2 :: 2]:  # half of them: another half with the next kind
        assert decide(mapping) == (slow.check_item(mapping, KINDS.get(kind)) == []), mapping


def test_without_the_quick_validator_errors_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra ``fast`` changes speed only."""
    wrong = {**GOOD, "importance": "high", "tittle": "x"}
    with_it = errors_of(wrong)
    monkeypatch.setattr(schema_module, "quick_check", lambda _schema, _formats: None)
    monkeypatch.setattr(schema_module, "_bundled_check", cache(schema_module._bundled_check.__wrapped__))

    assert errors_of(wrong) == with_it
    assert errors_of(GOOD) == []


def test_editor_files_stand_on_their_own() -> None:
    """What editors get holds no references, and items of a kind with a body know its shape (K6)."""
    own = {"type": "object", "properties": {"person": {"type": "string"}}}
    files = Schemas({"social": own}).editor_files()

    assert {"item.schema.json", "convention.schema.json", "social.schema.json", "kinds.schema.json"} <= files.keys()
    assert not any('"$ref"' in text for text in files.values())
    assert '"person"' in files["social.schema.json"]
    assert '"scope"' in files["convention.schema.json"]
