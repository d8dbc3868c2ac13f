"""The page of the memory context says what its schema and its rules say."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from memfs.config import load_memory_context
from memfs.fs.tree import Tree
from memfs.model.learning import FITTING, BehaviorAction, MemoryConfig, Trigger
from memfs.resources import schema_text
from memfs.workspace import OCCASIONS

PAGE = "docs/memory-context.md"
Read = Callable[[str], str]


def names(schema: Mapping[str, Any]) -> Iterator[str]:
    """Every key a memory context may have."""
    for name, inner in schema.get("properties", {}).items():
        yield name
        yield from names(inner)
    if "items" in schema:
        yield from names(schema["items"])


def test_every_key_and_every_default_is_on_the_page(page: Read) -> None:
    """Keys of the schema, and the defaults of the value, are there (M4)."""
    text = page(PAGE)
    defaults = MemoryConfig()
    schema = json.loads(schema_text("memory_context"))
    settings = schema["properties"]["polymorphic_config"]["properties"]["memory_config"]["properties"]

    assert [name for name in names(schema) if not re.search(rf"\b{name}\b", text)] == []
    for name in settings:
        default = getattr(defaults, name)
        shown = re.search(rf"^\| `{name}` \| (.*?) \|", text, re.MULTILINE)
        assert shown
        assert shown[1].strip("`") == (str(default) or "none")


def test_every_rule_is_on_the_page(page: Read) -> None:
    """Each trigger is beside the action that fits it (M4)."""
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| `(\w+)` \|", page(PAGE), re.MULTILINE)

    assert {(Trigger(trigger), BehaviorAction(action)) for trigger, action in rows} == {
        (trigger, action) for trigger, actions in FITTING.items() for action in actions
    }
    assert [name for name in OCCASIONS if f"`{name}`" not in page("docs/python.md")] == []


def test_the_example_on_the_page_counts(page: Read, tmp_path: Path) -> None:
    """The file that the page shows is valid, and means what the page says of it (M4)."""
    block = page(PAGE).partition("```yaml\n")[2].partition("```")[0]
    folder = tmp_path / "ContextMemory/configuration"
    folder.mkdir(parents=True)
    (folder / "memory_context.yaml").write_text(block)
    tree = Tree(tmp_path)

    config = load_memory_context(tree)
    tree.close()

    assert config == MemoryConfig(business_goal="Capture and apply learned knowledge")
