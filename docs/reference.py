"""The pages of the command line: what each verb takes and prints, from the verbs and their results themselves.

``python docs/reference.py`` brings ``cli.md`` and ``json.md`` beside it up to date. What stands above
``<!-- verbs -->``, and in the section of a verb below ``<!-- notes -->``, is written by hand and stays.
"""

from __future__ import annotations

import ast
import enum
import functools
import importlib
import inspect
import re
import sys
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from pathlib import Path, PurePath
from typing import Any

import click

from memfs.doors.cli.app import EVERYDAY, GROUPS, HIDDEN, MORE
from memfs.doors.cli.options import CommitReport
from memfs.doors.cli.output import ATTRIBUTES, keys
from memfs.doors.cli.parser import VerbCommand, cli

_VERBS, _NOTES = "<!-- verbs -->\n", "<!-- notes -->\n"
_SIMPLE: Mapping[Any, str] = {
    str: "string", bytes: "string", datetime: "string", date: "string",
    bool: "boolean", int: "integer", float: "number", type(None): "null",
}  # fmt: skip
_RANGE = re.compile(r"; [\d.]*<=?x<=?[\d.]*(?=\]$)|\s+\[[\d.]*<=?x<=?[\d.]*\]$")  # as click writes it
_SHARED = {"as_json", "help", "set", "workspace"}
Schema = dict[str, Any]


# -- JSON schemas -------------------------------------------------------------------------------------------------
def result_of(command: click.Command) -> type | None:
    """The dataclass whose fields are the JSON of a verb, or of its values; None of a verb that prints by itself."""
    function = inspect.unwrap(command.callback) if command.callback else None
    if function is None or not isinstance(command, VerbCommand) or command.verb.text is None:
        return None
    found = _evaluated(function.__annotations__["return"], sys.modules[function.__module__])
    parts = [part for part in typing.get_args(found) or (found,) if is_dataclass(part)]
    if len(parts) != 1:
        raise TypeError(f"{command.name} has to return one dataclass, or None: {found}")
    return typing.cast(type, parts[0])


def is_listed(command: click.Command) -> bool:
    """Whether the key of a verb has several values."""
    return "tuple[" in inspect.unwrap(typing.cast(types.FunctionType, command.callback)).__annotations__["return"]


def schema_of(command: click.Command) -> Schema:
    """The JSON schema of what a command prints, but for what ``VerbCommand`` adds: a revision, --dry-run, a commit."""
    kind, key = result_of(command), command.verb.key if isinstance(command, VerbCommand) else ""
    if not key:
        return schema(kind)
    rows = {"type": "array", "items": schema(kind)} if is_listed(command) else schema(kind)
    return {"type": "object", "properties": {key: rows}, "required": [key], "additionalProperties": False}


def schema(kind: Any) -> Schema:
    """The JSON schema of what ``output.as_json`` makes of a type's values; no key may be missing, none may be added."""
    if kind in _SIMPLE:
        return {"type": _SIMPLE[kind]}
    if isinstance(kind, type) and issubclass(kind, PurePath):
        return {"type": "string"}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [member.value for member in kind]}
    if isinstance(kind, type) and (is_dataclass(kind) or kind.__name__ in ATTRIBUTES):
        return _object(kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema(part) for part in arguments]}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema(arguments[1])}
    if origin is tuple and arguments[-1] is not Ellipsis:
        return {"type": "array", "prefixItems": [schema(part) for part in arguments]}
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return {"type": "array", "items": schema(arguments[0])}
    return {}


def _object(kind: type) -> Schema:
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for name, type_, text, needed in _keys(kind):
        properties[name] = {**schema(type_), **({"description": text} if text else {})}
        if needed:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _keys(kind: type, names: str = "") -> Iterator[tuple[str, Any, str, bool]]:
    """The keys that JSON has of a value: name, type, meaning, and whether each is always there."""
    hints, texts = _hints(kind), _properties(kind) | attributes(kind)
    chosen = names or ATTRIBUTES.get(kind.__name__, "")
    for key, attribute, always in keys(chosen):
        outer, _, inner = attribute.partition(".")
        if inner:
            within, *rest = typing.get_args(hints[outer]) or (hints[outer],)
            type_, text = next((type_, text) for _, type_, text, _ in _keys(within, inner))
            yield key, typing.Union[type_, None] if rest else type_, text, always  # noqa: UP007  of types at run time
        else:
            yield key, hints.get(attribute, str), texts.get(attribute, ""), always
    for field in () if chosen else fields(kind):
        merged = field.metadata.get("merge")
        if field.metadata.get("skip"):
            continue
        if merged:
            inner, *rest = typing.get_args(hints[field.name]) or (hints[field.name],)
            always = type(None) not in rest
            rows = _keys(inner, merged if isinstance(merged, str) else "")
            yield from ((name, type_, text, needed and always) for name, type_, text, needed in rows)
        else:
            yield field.name, hints[field.name], texts.get(field.name, ""), "omit" not in field.metadata


def _hints(kind: type) -> dict[str, Any]:
    """The types of a class's attributes, also of its properties."""
    found: dict[str, Any] = {}
    for owner in reversed(kind.__mro__[:-1]):
        module = sys.modules[owner.__module__]
        written = inspect.get_annotations(owner)
        for name, value in vars(owner).items():
            if isinstance(value, property) and value.fget is not None:
                written[name] = value.fget.__annotations__.get("return", "str")
        written = {name: text for name, text in written.items() if not str(text).startswith("ClassVar")}
        found |= {name: _evaluated(text, module) for name, text in written.items()}
    return found


def _evaluated(text: Any, module: types.ModuleType) -> Any:
    """An annotation's type, also where its names are imported for type checkers alone."""
    return typing.get_type_hints(types.SimpleNamespace(__annotations__={"it": text}), dict(_names(module)))["it"]


@functools.cache
def _names(module: types.ModuleType) -> Mapping[str, Any]:
    names = {**vars(module)}
    for node in ast.parse(inspect.getsource(module)).body:
        for one in node.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) else ():
            if isinstance(one, ast.ImportFrom) and one.module:
                home = importlib.import_module(one.module)
                names |= {alias.asname or alias.name: getattr(home, alias.name) for alias in one.names}
    return names


def attributes(kind: type) -> dict[str, str]:
    """What a docstring says of each attribute."""
    _, _, listed = (inspect.getdoc(kind) or "").partition("Attributes:\n")
    rows = re.findall(r"^    ([\w, ]+): (.+(?:\n     +.+)*)", listed, re.MULTILINE)
    return {name: " ".join(text.split()) for names, text in rows for name in names.split(", ")}


def _properties(kind: type) -> dict[str, str]:
    """What the docstring of each property says in its first line."""
    found = {name: value for name, value in vars(kind).items() if isinstance(value, property)}
    return {name: (inspect.getdoc(value) or "").partition("\n")[0] for name, value in found.items()}


# -- the pages ----------------------------------------------------------------------------------------------------
def json_page(present: str) -> str:
    """The page of what verbs print with ``--json``, with the introduction of the present one."""
    parts = [present.partition(_VERBS)[0], _VERBS]
    parts += [f"\n## {name}\n\n{_described(result, command)}\n" for name, result, command in results()]
    values = sorted(_model_values(), key=lambda kind: kind.__name__)
    parts += [f"\n## {kind.__name__}\n\n{_described(kind)}\n" for kind in values]
    return "".join(parts)


def results() -> Iterator[tuple[str, type, click.Command]]:
    """How each verb that returns a result is called, its actions too, and the class of the result, or of one of it."""
    for _, rows in families():
        for called, command in rows:
            inner = getattr(command, "commands", {})
            for name, one in ((called, command), *((f"{called} {action}", inner[action]) for action in inner)):
                if (result := result_of(one)) is not None:
                    yield name, result, one


def page(present: str) -> str:
    """The page as it ought to be, with what is written by hand in the present one.

    Raises:
        ValueError: notes are those of a verb that does not exist; they have to be moved or deleted.
    """
    intro, _, rest = present.partition(_VERBS)
    notes = dict(re.findall(rf"^### (.+)\n(?:(?!### ).*\n)*?{_NOTES}((?:(?!###? ).*\n)*)", rest, re.MULTILINE))
    parts = [intro, _VERBS, "\n"]
    for title, rows in families():
        parts.append(f"## {title}\n\n")
        for called, command in rows:
            parts += ["\n\n".join(_section(f"memfs {called}", command, 3)), "\n\n"]
            if called in notes:
                parts.append(f"{_NOTES}{notes.pop(called)}")
    if notes:
        raise ValueError(f"no verb is called {', '.join(notes)}: move its notes to the section of its new name")
    return "".join(parts).rstrip("\n") + "\n"


def families() -> Iterator[tuple[str, list[tuple[str, click.Command]]]]:
    """The headings of the page, each with its verbs: how they are called, and the commands, imported."""
    context = click.Context(cli, info_name="memfs")
    for title, verbs in (("Every day", EVERYDAY), ("More", MORE)):
        yield title, [(verb.name, _command(context, verb.name)) for verb in verbs]
    for name in GROUPS:
        inner = click.Context(_command(context, name), context, name)
        yield f"memfs {name}", [(f"{name} {verb.name}", _command(inner, verb.name)) for verb in GROUPS[name].verbs]
    yield "Called by other programs", [(verb.name, _command(context, verb.name)) for verb in HIDDEN]


def _command(context: click.Context, name: str) -> click.Command:
    command = typing.cast(click.Group, context.command).get_command(context, name)
    if command is None:
        raise LookupError(name)
    return command


def _section(called: str, command: click.Command, level: int) -> Iterator[str]:
    """The parts of a verb's section."""
    yield f"{'#' * level} {called.removeprefix('memfs ')}"
    context = click.Context(command, info_name=called)
    yield f"`{' '.join([called, *command.collect_usage_pieces(context)])}`"
    if command.help:
        yield _prose(command.help)
    rows = [row for row in (_option_row(one, context) for one in command.params) if row]
    if rows:
        yield "\n".join(["| option | what it does |", "|---|---|", *rows])
    if command.epilog:
        yield f"```sh\n{command.epilog}\n```"
    if result_of(command) is not None:
        yield f"[JSON](json.md#{called.removeprefix('memfs ').replace(' ', '-')})"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from _section(f"{called} {name}", _command(context, name), level + 1)


def _prose(text: str) -> str:
    """Help as markdown: paragraphs, and what click is to leave as it is in a block."""
    parts = []
    for paragraph in inspect.cleandoc(text).partition("\f")[0].strip().split("\n\n"):
        kept = paragraph.removeprefix("\b\n")
        parts.append(f"```text\n{kept}\n```" if kept != paragraph else " ".join(paragraph.split()))
    return "\n\n".join(parts)


def _option_row(option: click.Parameter, context: click.Context) -> str:
    if not isinstance(option, click.Option) or option.name in _SHARED:
        return ""
    if option.hidden:
        return f"| `{_cell(' '.join([option.opts[-1], option.make_metavar(context)]))}` | {_cell(option.help or '')} |"
    names, text = option.get_help_record(context) or ("", "")
    return f"| `{_cell(names)}` | {_cell(_RANGE.sub('', text))} |"


def _described(kind: type, command: click.Command | None = None) -> str:
    """What a value holds in JSON, or what a command prints, as a sentence and a table."""
    sentence = (inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " ")
    rows = list(_rows(kind, ""))
    if command is not None and (key := getattr(command, "key", "")):
        name = f"[{kind.__name__}](#{kind.__name__.lower()})" if kind.__name__ in ATTRIBUTES else "object"
        of, brackets = ("array of ", "[]") if is_listed(command) else ("", "")
        rows = [f"| `{key}` | {of}{name} | {_cell(sentence)} |"]
        rows += _rows(kind, f"{key}{brackets}.") if kind.__name__ not in ATTRIBUTES else ()
        sentence = _prose(command.help or "").partition("\n\n")[0]
    if isinstance(command, VerbCommand) and command.verb.lands:
        rows += (row.replace("` |", "?` |", 1) for row in _rows(CommitReport, ""))
    if command is not None and any(one.name == "dry_run" for one in command.params):
        rows.append("| `dry_run` | boolean | whether `--dry-run` was given. |")
    if (
        command is not None
        and any(one.name == "as_of" for one in command.params)
        and command.name not in ("blame", "log")
    ):
        rows += ["| `as_of?` | object | the revision it is of. |", "| `as_of.commit` | string | its id. |"]
        rows.append("| `as_of.time` | string | when it was committed. |")
    return "\n".join([sentence, "", "| key | type | meaning |", "|---|---|---|", *rows])


def _rows(kind: type, before: str) -> Iterator[str]:
    for name, type_, text, needed in _keys(kind):
        inner, brackets = _inner(type_)
        key = f"`{before}{name}{'' if needed else '?'}`"
        yield f"| {key} | {_cell(_words(type_))} | {_cell(text)} |"
        if inner is not None and inner.__name__ not in ATTRIBUTES:
            yield from _rows(inner, f"{before}{name}{brackets}.")


def _inner(type_: Any) -> tuple[type | None, str]:
    """The dataclass in a type, and the brackets that say whether it holds several."""
    if isinstance(type_, type) and (is_dataclass(type_) or type_.__name__ in ATTRIBUTES):
        return type_, ""
    origin = typing.get_origin(type_)
    for part in typing.get_args(type_):
        found, brackets = _inner(part)
        if found is not None:
            many = isinstance(origin, type) and issubclass(origin, Iterable)
            return found, "[]" + brackets if many else brackets
    return None, ""


def _words(type_: Any) -> str:
    """A type in words."""
    if isinstance(type_, type) and type_.__name__ in ATTRIBUTES:
        return f"[{type_.__name__}](#{type_.__name__.lower()})"
    origin, arguments = typing.get_origin(type_), typing.get_args(type_)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_words(part) for part in arguments)
    found = schema(type_)
    if found.get("type") == "array" and arguments:
        return f"array of {_words(arguments[0])}"
    if "enum" in found:
        return ", ".join(f"`{value}`" if value else '""' for value in found["enum"])
    return str(found.get("type", "any"))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("``", "`").replace(" INTEGER RANGE", " NUMBER")


def _model_values() -> set[type]:
    """The classes of the model that stand in results."""
    found: set[type] = set()

    def look(kind: type) -> None:
        for _, type_, _, _ in _keys(kind):
            inner, _ = _inner(type_)
            if inner is not None and inner not in found:
                if inner.__name__ in ATTRIBUTES:
                    found.add(inner)
                look(inner)

    for _, result, command in results():
        look(result)
        found |= {result} if result.__name__ in ATTRIBUTES and getattr(command, "key", None) else set()
    return found


def main() -> None:
    """Bring the pages up to date."""
    for name, made in (("cli.md", page), ("json.md", json_page)):
        place = Path(__file__).with_name(name)
        place.write_text(made(place.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
