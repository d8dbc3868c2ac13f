"""The pages say everything there is, and nothing that there is not."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import reference

import memfs
from memfs import errors, seeds
from memfs.doors.cli.app import VERBS
from memfs.doors.cli.parser import cli
from memfs.format.secrets import CONTEXTS, INSIDE, TOKENS
from memfs.model import BUILT_IN
from memfs.resources import schema_text
from memfs.settings import SPECS, Spec, toml

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
PAGES += ["README.md", "CHANGELOG.md", "SECURITY.md", "example-workspace/README.md"]
Read = Callable[[str], str]
FOLDERS = {"architecture": [], "contributing": [], "internals": sorted((ROOT / "memfs").glob("*/"))}


def error_names() -> list[str]:
    """Every error class memfs raises on purpose."""
    found = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    return [value.__name__ for value in found if value.__module__ == errors.__name__]


def rows(text: str, heading: str) -> dict[str, list[str]]:
    """The rows of the first table below a line that begins with ``heading``, by what is in their first cell."""
    table = text[text.index(heading) :].partition("|---")[2].partition("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[1:]]
    return {row[0].strip("` "): row[1:] for row in cells}


def section(text: str, title: str) -> str:
    """What is below a heading of any level, up to the next heading of that level or above."""
    begin = re.search(rf"^(#+) {re.escape(title)}\n", text, re.MULTILINE)
    assert begin, f"no heading {title!r}"
    rest = text[begin.end() :]
    end = re.search(rf"^#{{1,{len(begin[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


# -- python.md ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", sorted([*memfs.__all__, *seeds.__all__]))
def test_every_public_name_is_described(name: str, page: Read) -> None:
    """A name that can be imported from memfs is on the page of the Python API."""
    assert re.search(rf"\b{name}\b", page("docs/python.md"))


def test_every_error_is_in_the_table(page: Read) -> None:
    """The table of errors names each class with its parent, and no other."""
    listed = rows(page("docs/python.md"), "## Errors")
    parents = {name: getattr(errors, name).__bases__[0].__name__ for name in error_names()}
    assert {name: row[0].strip("`") or "Exception" for name, row in listed.items()} == parents


@pytest.mark.parametrize(
    ("owner", "heading"),
    [
        ("store.store:Store", "Writing"),
        ("admin.history:History", "History"),
        ("admin.history:RecoveryCopies", "History"),
    ],
)
def test_every_method_people_call_is_described(owner: str, heading: str, page: Read) -> None:
    """Public methods of the parts of a workspace are on the page; the machinery's own are named here."""
    module, _, name = owner.partition(":")
    part = getattr(__import__(f"memfs.{module}", fromlist=[name]), name)
    inner = {
        "begun", "beside", "fail_back", "by_hand", "candidates", "carry_out", "close", "displaced", "edit_finder",
        "fold", "fold_if_large", "follow", "found_at", "freshness", "has_seen", "head", "keep", "load", "locate",
        "exclude_writers", "note_failure", "notice_commits", "plan_restore", "put_documents", "refuse_edited",
        "reindex", "release", "resume", "scan_once", "has_conversations", "maintain", "watch_with", "watching",
        "writing",
    }  # fmt: skip
    public = {method for method in vars(part) if not method.startswith("_")} - inner
    text = page("docs/python.md")
    assert heading in text
    assert [method for method in sorted(public) if not re.search(rf"\.{method}\(", text)] == []


# -- cli.md -------------------------------------------------------------------------------------------------------
def test_the_page_of_the_command_line_is_current(page: Read) -> None:
    """What verbs take and print is on the page as the verbs themselves declare it."""
    for name, made in (("docs/cli.md", reference.page), ("docs/json.md", reference.json_page)):
        assert made(page(name)) == page(name), "run: python docs/reference.py"


def test_notes_on_a_verb_that_is_gone_are_not_lost(page: Read) -> None:
    """The page is not made without what was written by hand about a verb of another name."""
    moved = page("docs/cli.md").replace("\n### remember\n", "\n### memorize\n")
    with pytest.raises(ValueError, match="memorize"):
        reference.page(moved)


def test_global_options_are_described_once(page: Read) -> None:
    """Options of the command itself come before the verbs."""
    options = {written for option in cli.params for written in option.opts if written.startswith("--")} - {"--help"}
    assert [option for option in sorted(options) if option not in section(page("docs/cli.md"), "For all verbs")] == []


def test_no_option_is_made_up(page: Read) -> None:
    """Every option the page of the command line mentions exists."""
    commands = [command for _, rows in reference.families() for _, command in rows]
    commands += [inner for command in commands for inner in getattr(command, "commands", {}).values()]
    options = [option for command in commands for option in command.params]
    known = {written for option in options for written in (*option.opts, *option.secondary_opts)}
    known |= {written for option in cli.params for written in option.opts} | {"--help"}
    mentioned = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", page("docs/cli.md")))
    assert mentioned - known == set()


def test_every_code_of_check_is_listed(page: Read) -> None:
    """Codes that are not error classes have a row in the section of check."""
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "memfs").rglob("*.py"))
    kept = re.findall(r'code ?= ?"(\w{3,})"|Problem\.warning\([^,]+, "(\w+)"', source)
    codes = {name for pair in kept for name in pair if name} - set(error_names())
    listed = set(rows(page("docs/cli.md"), "`code` is the name"))
    assert codes - listed == set()
    assert listed - codes - set(error_names()) == set()


def test_the_changelog_names_every_verb(page: Read) -> None:
    """A verb that is new is worth a line."""
    assert [verb for verb in VERBS if f"`{verb}`" not in page("CHANGELOG.md")] == []


# -- kinds.md, settings.md, format.md -----------------------------------------------------------------------------
def test_kinds_are_the_present_ones(page: Read) -> None:
    """The table of kinds is the kind table."""
    expected = {
        kind.name: [kind.layer.value, f"{kind.half_life_days:g}", str(kind.retention_days), kind.description]
        for kind in BUILT_IN
    }
    assert {
        name: [cell.rstrip(" |") for cell in row] for name, row in rows(page("docs/kinds.md"), "Built in").items()
    } == (expected)


def values(spec: Spec) -> str:
    """What a setting may be, in words."""
    if spec.choices:
        return ", ".join(f"`{choice}`" for choice in spec.choices)
    if isinstance(spec.default, bool):
        return "`true`, `false`"
    if isinstance(spec.default, str):
        return "text"
    return "list of names" if isinstance(spec.default, tuple) else f"{spec.low:.9g} to {spec.high:.9g}"


def test_settings_are_the_present_ones(page: Read) -> None:
    """The table of settings is what memfs.config says: names, defaults, values, meaning."""
    expected = {key: [f"`{toml(spec.default)}`", values(spec), spec.summary] for key, spec in SPECS.items()}
    listed = rows(page("docs/settings.md"), "Each setting")
    assert {key: [cell.rstrip(" |") for cell in row] for key, row in listed.items()} == expected


def test_personal_settings_are_listed(page: Read) -> None:
    """Settings that a repository's file may not loosen are in the section that says so."""
    described = section(page("docs/settings.md"), "What a repository may not decide")
    assert set(re.findall(r"^- `(\S+)`$", described, re.MULTILINE)) == {
        key for key, spec in SPECS.items() if spec.personal
    }


@pytest.mark.parametrize("key", ["history.commit", "index.engine"])
def test_each_choice_is_explained(key: str, page: Read) -> None:
    """Settings that are a choice have a table with every choice."""
    assert set(rows(page("docs/settings.md"), f"`{key}`\n\n| ".partition("\n")[0] + "\n")) == set(SPECS[key].choices)


def test_settings_of_sources_are_named(page: Read) -> None:
    """Settings below [memory.<source>], which the schema knows, are on the page."""
    sources = json.loads(schema_text("memfs_toml"))["properties"]["memory"]["properties"]
    names = [name for source in sources.values() for name in source.get("properties", {})]
    assert names
    assert [name for name in names if name not in page("docs/settings.md")] == []


def test_fields_of_an_item_are_the_schemas(page: Read) -> None:
    """The format names every field of an item and of its origin, and no other."""
    properties = json.loads(schema_text("item"))["properties"]
    text = page("docs/format.md")
    assert list(rows(text, "## Fields of an item")) == list(properties)
    assert list(rows(text, "Keys of `origin`")) == list(properties["origin"]["properties"])


def test_shapes_of_bodies_are_named(page: Read) -> None:
    """Fields of pattern, rule and convention bodies are on the page of kinds."""
    names = [
        name for kind in BUILT_IN if kind.body for name in json.loads(schema_text(f"{kind.body}.body"))["properties"]
    ]
    assert [name for name in names if not re.search(rf"\b{name}\b", page("docs/kinds.md"))] == []


def test_git_attributes_are_the_ones_laid(page: Read) -> None:
    """The format shows the attributes that init writes."""
    template = (ROOT / "templates/gitattributes").read_text()
    rules = [line for line in template.splitlines() if line and not line.startswith("#")]
    assert rules
    assert [rule for rule in rules if rule not in page("docs/format.md")] == []


def test_rules_for_secrets_are_the_present_ones(page: Read) -> None:
    """The page of secrets names every rule of the table, and no other."""
    listed = section(page("docs/secrets.md"), "What is detected").partition("\n\nStand-ins")[0]
    named = {
        name
        for row in rows(listed, "Values").values()
        for name in re.findall(r"`([a-z0-9]+(?:-[a-z0-9]+)+|jwt)`", row[0])
    }
    assert named == {rule.id for rule in (*TOKENS, *INSIDE, *CONTEXTS)}


# -- all pages ----------------------------------------------------------------------------------------------------
def anchors(text: str) -> set[str]:
    """The anchors that headings of a page get."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_somewhere(name: str, page: Read) -> None:
    """Links between pages lead to files that exist, and to headings in them."""
    here = (ROOT / name).parent
    broken = []
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`(?!\])", "", page(name), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", prose):
        path, _, anchor = target.partition("#")
        file = (here / path) if path else ROOT / name
        if not file.exists() or (anchor and anchor not in anchors(file.read_text(encoding="utf-8"))):
            broken.append(target)
    assert broken == []


def test_every_decision_is_listed(page: Read) -> None:
    """Each decision page is linked from the list of decisions."""
    pages = sorted(path.name for path in (ROOT / "docs/decisions").glob("0*.md"))
    assert pages
    assert [name for name in pages if f"({name})" not in page("docs/decisions/README.md")] == []


# -- the pages about the code -------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["architecture", "contributing", "internals"])
def test_every_module_that_is_named_is_there(name: str, page: Read) -> None:
    """A module's path on the pages about the code leads to a file, and a name after it to something in that file."""
    text = page(f"docs/{name}.md")
    wrong = []
    for path, owner in re.findall(r"`((?:\w+/)*\w+\.py)(?::([\w.]+))?`", text):
        places = [place / path for place in (ROOT, ROOT / "memfs", *FOLDERS[name])]
        found = next((place for place in places if place.is_file()), None)
        if found is None or (owner and not has(found, owner)):
            wrong.append(f"{path}:{owner}")
    assert wrong == []


def has(path: Path, owner: str) -> bool:
    """Whether a module has a class or function, or a class of it a method."""
    nodes: Sequence[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    for part in owner.split("."):
        inner = [child for node in nodes for child in ast.iter_child_nodes(node)]
        nodes = [one for one in inner if isinstance(one, (ast.ClassDef, ast.FunctionDef)) and one.name == part]
    return bool(nodes)
