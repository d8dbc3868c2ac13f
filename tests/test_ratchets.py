"""What the code may weigh: each number is in ``ratchets.toml``, and may only fall."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kit.faults import Fault, injected
from kit.sources import Source, sources
from memfs import errors
from memfs.model import MemoryItem
from memfs.workspace import open_workspace

ROOT = Path(__file__).parent.parent
NUMBERS: dict[str, Any] = tomllib.loads((ROOT / "tests/ratchets.toml").read_text(encoding="utf-8"))
SMALL = 60
_GERUND = re.compile(r"(?:ing|ings)$")
_PARTICIPLE = re.compile(r"(?:ed|wn|ept|eld|aught|ought|aken|iven|seen|told|gone|made|lost|found|said|left|sent)$")
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


@dataclass(frozen=True, slots=True)
class Module:
    """What is counted of a module.

    Attributes:
        folder: the package it is in, relative to ``memfs``; "" for the root.
        lines: those with a token that is neither comment nor docstring.
        classes: the public and private classes at its top, but for exceptions, which say what happened.
        imports: own modules that it imports when it is imported itself.
        uses: own modules that it imports anywhere.
    """

    folder: str
    lines: int
    classes: tuple[str, ...]
    imports: frozenset[str]
    uses: frozenset[str]
    package: bool


@cache
def modules() -> Mapping[str, Module]:
    """Every module of memfs by its dotted name."""
    known = frozenset(sources())
    return {name: module_of(source, known) for name, source in sources().items()}


def module_of(source: Source, known: frozenset[str]) -> Module:
    """Count one module."""
    path, tree = source.path, source.tree
    return Module(
        folder=path.parent.relative_to(ROOT / "memfs").as_posix(),
        lines=len(code_lines(source)),
        classes=tuple(node.name for node in tree.body if isinstance(node, ast.ClassDef) and not is_exception(node)),
        imports=frozenset(own_imports(top_level(tree.body), known)),
        uses=frozenset(own_imports(source.nodes, known)),
        package=path.name == "__init__.py",
    )


def is_exception(node: ast.ClassDef) -> bool:
    """Whether a class is raised."""
    names = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
    known = {name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, BaseException)}
    return bool(names & (known | {"Exception", "BaseException"})) or any(name.endswith("Error") for name in names)


def code_lines(source: Source) -> set[int]:
    """The lines with a token that is neither comment nor docstring."""
    lines = enumerate(source.text.splitlines(), 1)
    found = {number for number, line in lines if (bare := line.strip()) and not bare.startswith("#")}
    silent = set[int]()
    for node in source.nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            silent.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno != node.lineno:
            found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))  # a line of a text is not a comment
    return found - silent


def top_level(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported, but for those for type checkers."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            yield from top_level([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from top_level(node.body)
        else:
            yield node


def own_imports(nodes: Iterable[ast.AST], known: frozenset[str]) -> Iterator[str]:
    """The modules of memfs that some nodes import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if name in known else node.module or "" for name in names)


def words(name: str) -> list[str]:
    """The words of a module's or a class's name."""
    return [word.lower() for word in _WORD.findall(name.replace("_", " "))]


def is_verb_form(name: str) -> bool:
    """Whether a name ends in a gerund or a participle that is not a term of the field."""
    last = words(name)[-1]
    return bool(_GERUND.search(last) or _PARTICIPLE.search(last)) and last not in NUMBERS["names"]["allowed"]


def held(what: str, found: Iterable[str]) -> None:
    """A list may not be longer than its number, and the number is no higher than the list."""
    rows = sorted(found)
    number = NUMBERS["most"][what]
    assert len(rows) <= number, f"{what}: {len(rows)}, at most {number}: {rows}"
    assert len(rows) == number, f"{what} fell to {len(rows)}: write that into tests/ratchets.toml"


# -- size ---------------------------------------------------------------------------------------------------------
def test_no_folder_grows() -> None:
    """A folder has at most its number of code lines; a hundred fewer, and the number is lowered."""
    found = Counter[str]()
    for module in modules().values():
        found[module.folder] += module.lines
    numbers = NUMBERS["lines"]
    assert found.keys() == numbers.keys()
    grown = {folder: lines for folder, lines in found.items() if lines > numbers[folder]}
    slack = {folder: lines for folder, lines in found.items() if lines < numbers[folder] - 100}
    assert (grown, slack) == ({}, {})


def test_there_are_no_more_modules() -> None:
    """Another idea belongs to a module that is there, or replaces one."""
    held("modules", modules())


def test_few_modules_are_small() -> None:
    """Under sixty lines a module is seldom an idea of its own; a verb is one, however short."""
    small = {name for name, one in modules().items() if one.lines < SMALL and not one.package}
    held("small", small - set(verb_homes().values()))


def verb_homes() -> Mapping[str, str]:
    """The module of each verb, by the words that call it."""
    from memfs.doors.cli.app import GROUPS, VERBS

    found = {name: verb.module or name.replace("-", "_") for name, verb in VERBS.items()}
    for group, family in GROUPS.items():
        found |= {f"{group} {verb.name}": verb.module or group for verb in family.verbs}
    return {called: f"memfs.doors.cli.{home}" for called, home in found.items()}


def test_few_modules_have_one_user_beside_them() -> None:
    """What only its neighbour needs is mostly a part of that."""
    users: dict[str, set[str]] = defaultdict(set)
    for name, module in modules().items():
        for used in module.uses - {name}:
            users[used].add(name)
    alone = (name for name, found in users.items() if len(found) == 1 and not modules()[name].package)
    held("one_user", (name for name in alone if modules()[next(iter(users[name]))].folder == modules()[name].folder))


# -- names --------------------------------------------------------------------------------------------------------
def test_modules_are_named_by_nouns() -> None:
    """No module's name is a gerund or a participle, but for the field's own terms."""
    held("verb_form_modules", (name for name in modules() if is_verb_form(name.rpartition(".")[2])))


def test_classes_are_named_by_nouns() -> None:
    """No class's name is a gerund or a participle, but for the field's own terms."""
    rows = ((name, one) for name, module in modules().items() for one in module.classes)
    held("verb_form_classes", (f"{name}.{one}" for name, one in rows if is_verb_form(one)))


def test_a_class_name_is_used_once() -> None:
    """A public class is found by its name alone."""
    places: dict[str, list[str]] = defaultdict(list)
    for name, module in modules().items():
        for one in module.classes:
            if not one.startswith("_"):
                places[one].append(name)
    held("class_names_twice", (f"{one}: {found}" for one, found in places.items() if len(found) > 1))


def test_a_verb_lives_in_the_module_of_its_name() -> None:
    """What ``memfs VERB`` does is found by opening ``doors/cli/VERB.py``, and a verb of a group in ``GROUP.py``."""
    rows = [
        (called, called.replace("-", "_").split(), home.rpartition(".")[2]) for called, home in verb_homes().items()
    ]
    held("verbs_elsewhere", (called for called, names, home in rows if home not in names))


# -- imports ------------------------------------------------------------------------------------------------------
def test_no_modules_import_each_other() -> None:
    """No circle of imports, in a folder or beyond it."""
    assert [
        circle for circle in circles({name: one.imports for name, one in modules().items()}) if len(circle) > 1
    ] == []


def circles(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The strongly connected parts of a graph, as Tarjan finds them."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for target in edges.get(name, ()):
            if target == "memfs" or target == name:  # the package's own names are imported late
                continue
            if target not in order:
                visit(target)
                low[name] = min(low[name], low[target])
            elif target in stack:
                low[name] = min(low[name], order[target])
        if low[name] == order[name]:
            start = stack.index(name)
            found.append(stack[start:])
            del stack[start:]

    for name in edges:
        if name not in order:
            visit(name)
    return found


# -- the way of a command -----------------------------------------------------------------------------------------
_COUNT = """
import json, os, sys
before = set(sys.modules)
from memfs.__main__ import main
here = os.path.dirname(sys.modules["memfs"].__file__) + os.sep
sys.argv = ["memfs", *sys.argv[1:]]
run, children = set(), []
def begun(event, _):
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn"):
        children.append(event)
sys.addaudithook(begun)
def note(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(here) and not code.co_name.startswith("<"):
        run.add((code.co_filename, code.co_firstlineno))
sys.setprofile(note)
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
sys.setprofile(None)
own = sum(name == "memfs" or name.startswith("memfs.") for name in sys.modules)
found = {"functions": len(run), "modules": own, "all": len(sys.modules.keys() - before), "children": len(children)}
print(json.dumps({**found, "names": sorted(sys.modules.keys() - before)}), file=sys.stderr)
"""
COMMANDS = {
    "remember": ("remember", "--type", "knowledge", "the tests run with make test"),
    "recall": ("recall", "how do the tests run"),
    "list": ("list",),
    "show": ("show", "first"),
    "status": ("status",),
}
SLOW = {
    "asyncio",
    "click",
    "concurrent.futures",
    "email",
    "http",
    "inspect",
    "jsonschema",
    "jsonschema_rs",
    "logging",
    "ntpath",
    "shlex",
    "ssl",
    "tomllib",
    "typing",
    "urllib.parse",
    "yaml",
}
"""What takes long to import; none of it is needed to answer."""
NEEDED = {
    # what is written is checked by its schema, and committed
    "remember": {"email", "inspect", "jsonschema_rs", "typing", "urllib.parse", "yaml"},
}


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_command_runs_few_functions_in_few_modules(verb: str, tmp_path: Path) -> None:
    """What a command runs and imports bounds what a reader must know to follow it, and what it costs to start; so do
    the processes that it begins.
    """
    with open_workspace(tmp_path, create=True, watch=False) as workspace:
        workspace.store.put(MemoryItem("the tests run under pytest", "knowledge", id="first"))
        workspace.store.flush()
    done = subprocess.run(
        [sys.executable, "-c", _COUNT, *COMMANDS[verb]], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    found = json.loads(done.stderr.splitlines()[-1])
    assert SLOW.intersection(found["names"]) <= NEEDED.get(verb, set())
    numbers = NUMBERS["run"].get(verb, {})
    for name, most in numbers.items():
        assert found[name] <= most + (NUMBERS["run"]["leeway"] if name == "functions" else 0), name


def test_a_write_reaches_the_disk_in_few_steps(tmp_path: Path) -> None:
    """From ``Store.put`` to the first write a reader passes few functions."""
    depths: list[int] = []

    class FirstWrite(Fault):
        """Notes how deep below ``Store.put`` the first write is."""

        def __call__(self, name: str, path: str) -> None:
            """The hook itself."""
            if name == "write" and not depths:
                frame, names = sys._getframe(1), []
                while frame is not None and not (names and names[-1] == "put"):
                    names.append(frame.f_code.co_name)
                    frame = frame.f_back  # type: ignore[assignment]
                depths.append(len(names))
            super().__call__(name, path)

    with open_workspace(tmp_path, create=True, watch=False) as workspace, injected(FirstWrite()):
        workspace.store.put(MemoryItem("x", "knowledge"))
    assert depths == [NUMBERS["most"]["frames_of_a_write"]]
