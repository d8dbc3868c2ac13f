"""The bundled schemas and templates, and that they agree (K6)."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from memfs import config
from memfs.errors import SchemaInvalid
from memfs.format import item_fields, yaml_text
from memfs.format.codec import Codec
from memfs.format.schema import Schemas
from memfs.model import MemoryItem
from memfs.model.kinds import BUILT_IN, Kind, KindTable, Layer
from memfs.resources import schema_names, schema_text, template_names, template_text

CODEC = Codec(Schemas(), KindTable())
NOW = datetime(2026, 3, 1, tzinfo=UTC)
POLICIES = {"max", "min", "sum", "union", "lww", "text3", "keys", "same", "conflict", "sequence"}
DOCUMENTS = {
    "memory_context.yaml": "memory_context",
    "universal/memory-base.yaml": "memory_context",
    "kinds.yaml": "kinds",
    "context-session.yaml": "context",
    "system_config.json": "system_config",
    "retention_policy.json": "retention_policy",
}


def properties(schema: Any, path: str = "#") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every property of a schema, at any depth, with its place."""
    if isinstance(schema, Mapping):
        for name, part in schema.get("properties", {}).items():
            yield f"{path}/{name}", part
            yield from properties(part, f"{path}/{name}")
        for key in ("items", "additionalProperties"):
            yield from properties(schema.get(key), f"{path}/{key}")


def uncommented(text: str) -> str:
    """A template with the advice that holds ``key: value`` lines taken up."""
    lines = []
    for line in text.splitlines():
        advice = re.fullmatch(r"( *)# ((?: *- | *)[a-z_]+:(?: .*)?| *- .*)", line)
        lines.append(f"{advice[1]}{advice[2]}" if advice and "yaml-language-server" not in line else line)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.name)
def test_k6_every_kind_has_a_template_that_is_a_valid_item(kind: Kind) -> None:
    """What ``memfs remember --edit`` starts from can be saved as it is, and its advice can be followed."""
    path = f"ContextMemory/{kind.folder}/x.yaml"
    text = template_text(kind.name)

    item = CODEC.read(text.encode(), path, NOW)

    assert (item.type, item.trust, bool(item.title), bool(item.content)) == (kind.name, "human", True, True)
    assert kind.description in text
    known = list(item_fields.ORDER)
    written = list(yaml_text.load(uncommented(text)))
    assert written == sorted(written, key=known.index)
    assert CODEC.errors(uncommented(text).encode(), path) == []


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.name)
def test_k6_a_template_names_the_schema_that_editors_get(kind: Kind) -> None:
    """The first line leads from the file's usual place to the kind's schema in ``.schemas/``."""
    first = template_text(kind.name).splitlines()[0]
    depth = kind.folder.count("/") + 1 + (1 if kind.dated else 0)
    name = f"{kind.body or 'item'}.schema.json"

    assert first == f"# yaml-language-server: $schema={'../' * depth}.schemas/{name}"
    assert name in Schemas().editor_files()


@pytest.mark.parametrize(("template", "schema"), DOCUMENTS.items())
def test_k6_document_templates_are_valid(template: str, schema: str) -> None:
    """Each configuration document can be used as it ships."""
    assert CODEC.read_document(template_text(template).encode(), template, schema)


def test_k6_every_template_is_tested_here() -> None:
    """No template ships without a test."""
    kinds = {f"{kind.name}.yaml" for kind in BUILT_IN}

    others = {"memfs.toml", "gitattributes", "vscode-settings.json", "feedback_template.md"}
    others |= {"github-workflow.yml"}  # tests/team/test_review_cli.py
    assert set(template_names()) == {*kinds, *DOCUMENTS, *others}


def test_m4_the_base_context_is_found_by_the_name_that_extends_uses() -> None:
    """``extends: universal/memory-base`` names a template."""
    extends = yaml_text.load(template_text("memory_context"))["intent_context"]["extends"]

    base = yaml_text.load(template_text(extends))
    assert base["polymorphic_config"]["memory_config"]["max_memories"] == 10_000


def test_m4_the_seeds_own_file_is_valid() -> None:
    """The file of seed 002 passes as it is."""
    text = (
        "metadata:\n  type: memory\n  name: Workspace Memory\n\nintent_context:\n  business_goal: Capture\n"
        "  extends: ../../../universal/memory-base\n\npolymorphic_config:\n  memory_config:\n"
        "    storage_type: vector_db\n"
        "    embedding_model: text-embedding-ada-002\n    max_memories: 10000\n"
        "    pattern_threshold: 3  # how often\n\n"
        "behavior_rules:\n  - trigger: context_accessed\n    action: inject_relevant_memories\n\n"
        "  - trigger: task_completed\n    action: extract_learnings\n\n"
        "  - trigger: pattern_detected\n    action: create_reusable_knowledge\n"
    )

    assert CODEC.read_document(text.encode(), "memory_context.yaml", "memory_context")


def test_p5_the_toml_template_and_schema_agree_with_the_settings() -> None:
    """Every setting is in the template, uncommented it is valid, and schema and settings have one default."""
    text = template_text("memfs.toml")
    shown = tomllib.loads(re.sub(r"^#([a-z_]+ = )", r"\1", text, flags=re.MULTILINE))
    schema = json.loads(schema_text("memfs_toml"))

    assert Schemas().check_document(tomllib.loads(text), "memfs_toml") == []
    assert Schemas().check_document(shown, "memfs_toml") == []
    for key, spec in config.SPECS.items():
        default = list(spec.default) if isinstance(spec.default, tuple) else spec.default
        described: Any = schema
        value: Any = shown
        for part in key.split("."):
            described, value = described["properties"][part], value[part]
        assert value == described["default"] == default, key
        assert described.get("enum", []) == list(spec.choices), key
        assert described["description"]


def test_p5_the_seeds_memory_tables_are_valid() -> None:
    """The ``[memory]`` tables of seed 004 pass; a slip is named."""
    tables: dict[str, Any] = {
        "memory": {
            "automatic": ["preferences"],
            "triggered": ["episodic", "semantic"],
            "on_demand": True,
            "preferences": {"max_items": 10},
            "episodic": {"similarity_threshold": 0.7, "max_warnings": 3},
            "semantic": {"min_confidence": 0.7},
        }
    }
    assert Schemas().check_document(tables, "memfs_toml") == []
    tables["memory"]["episodic"] = {"max_warning": 3}

    (error,) = Schemas().check_document(tables, "memfs_toml")

    assert (error.path, error.hint) == (("memory", "episodic", "max_warning"), "did you mean 'max_warnings'?")


@pytest.mark.parametrize("name", schema_names())
def test_schemas_explain_each_field_to_editors_and_to_the_merge(name: str) -> None:
    """Every property has a title, a description and a rule by which two branches' values are joined."""
    schema = json.loads(schema_text(name))

    assert schema["title"]
    assert schema["description"]
    for place, part in properties(schema):
        assert part.get("title"), place
        assert part.get("description", "").endswith("."), place
        assert part.get("x-merge") in POLICIES, place


def test_examples_and_defaults_in_schemas_are_valid() -> None:
    """What an editor offers would pass."""
    item = json.loads(schema_text("item"))
    kind = KindTable().get("semantic")
    for name, part in item["properties"].items():
        if name != "type":
            for value in [*part.get("examples", []), *([part["default"]] if "default" in part else [])]:
                assert Schemas().check_item({"title": "x", name: value}, kind) == [], (name, value)
    for body in ("pattern", "rule", "convention"):
        shape = json.loads(schema_text(f"{body}.body"))
        data = {name: part["examples"][0] for name, part in shape["properties"].items() if "examples" in part}
        assert Schemas().check_item({"title": "x", "data": data}, KindTable().get(body)) == []


def test_the_item_schema_lists_the_fields_in_canonical_order() -> None:
    """Editors offer fields in the order in which the writer puts them."""
    item = json.loads(schema_text("item"))

    assert list(item["properties"]) == list(item_fields.ORDER)
    assert list(item["properties"]["origin"]["properties"]) == list(item_fields.ORDER["origin"])


def test_the_kinds_template_makes_a_kind_whose_body_is_checked() -> None:
    """A new type needs a row and nothing else (C2)."""
    row = CODEC.read_document(template_text("kinds").encode(), "kinds.yaml", "kinds")["kinds"]["social"]
    kind = Kind(
        name="social",
        layer=Layer(row["layer"]),
        description=row["description"],
        folder="memories/social",
        body="social",
    )
    codec = Codec(Schemas({"social": row["body"]}), KindTable([*BUILT_IN, kind]))
    path = "ContextMemory/memories/social/x.yaml"

    assert codec.read(b"title: x\ndata:\n  person: Ada\n", path, NOW).data == {"person": "Ada"}
    (error,) = codec.errors(b"title: x\ndata:\n  person: 3\n", path)
    assert (error.line, error.field) == (3, "data.person")


@pytest.mark.parametrize("path", ["x.yaml", "x.json"])
def test_what_a_kinds_body_requires_is_demanded_without_data(path: str) -> None:
    """A field that the body requires must be there, whether ``data`` lacks it or is absent; written or read (K3)."""
    body = {"type": "object", "required": ["person"], "properties": {"person": {"type": "string"}}}
    kind = Kind(name="social", layer=Layer.SEMANTIC, description="x", folder="memories/social", body="social")
    codec = Codec(Schemas({"social": body}), KindTable([*BUILT_IN, kind]))
    path = f"ContextMemory/memories/social/{path}"

    (absent,) = codec.errors(b'{"title": "x"}', path)
    (lacking,) = codec.errors(b'{"title": "x", "data": {}}', path)
    assert ("data" in absent.message + (absent.hint or ""), "person" in lacking.message + (lacking.hint or "")) == (
        True,
        True,
    )
    for item in (MemoryItem("x", "social"), MemoryItem("x", "social", data={"team": "a"})):
        with pytest.raises(SchemaInvalid):
            codec.write(item, path)
    assert codec.write(MemoryItem("x", "social", data={"person": "Ada"}), path)
    assert json.loads(Schemas({"social": body}).editor_files()["social.schema.json"])["required"] == ["data"]


def test_editor_settings_point_at_files_that_init_lays() -> None:
    """Every schema named in the VS Code snippet is among the files for ``.schemas/``."""
    settings = json.loads(template_text("vscode-settings.json"))
    named = [*settings["yaml.schemas"], *(entry["url"] for entry in settings["json.schemas"])]

    assert {name.removeprefix("./ContextMemory/.schemas/") for name in named} <= Schemas().editor_files().keys()


def test_resources_are_found_by_short_or_full_name_and_nothing_else() -> None:
    """A name is looked up among the files that ship, never opened as a path."""
    assert template_text("semantic") == template_text("semantic.yaml")
    assert schema_text("item") == schema_text("item.schema.json")
    for name in ("nope", "../pyproject.toml", "/etc/passwd"):
        with pytest.raises(KeyError):
            template_text(name)
        with pytest.raises(KeyError):
            schema_text(name)
