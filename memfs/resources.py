"""Finds the bundled schemas, templates and languages, in an installed package and in a checkout alike."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from memfs.startup import Any, json

_PACKAGE = Path(__file__).resolve().parent
_SCHEMA_SUFFIX = ".schema.json"


def schema_names() -> tuple[str, ...]:
    """Names of the bundled schemas without ``.schema.json``, sorted: ``item``, ``convention.body``, ..."""
    return tuple(
        sorted(name.removesuffix(_SCHEMA_SUFFIX) for name in _files("schemas") if name.endswith(_SCHEMA_SUFFIX))
    )


def template_names() -> tuple[str, ...]:
    """Names of the bundled templates, sorted: ``semantic.yaml``, ``memfs.toml``, ``universal/memory-base.yaml``, ..."""
    return tuple(sorted(_files("templates")))


def schema_text(name: str) -> str:
    """The text of a schema, by its name with or without ``.schema.json``.

    Raises:
        KeyError: there is no such schema.
    """
    return _text("schemas", name.removesuffix(_SCHEMA_SUFFIX) + _SCHEMA_SUFFIX)


def template_text(name: str) -> str:
    """The text of a template, by its name; ``.yaml`` may be left out, so that a kind's name is enough.

    Raises:
        KeyError: there is no such template.
    """
    return _text("templates", name if name in _files("templates") else f"{name}.yaml")


def language_names() -> tuple[str, ...]:
    """The codes of the languages whose wordings are known, sorted: ``en``, ..."""
    return tuple(sorted(name.removesuffix(".toml") for name in _files("languages") if name.endswith(".toml")))


def language_text(name: str) -> str:
    """The text of a language's file, by its code.

    Raises:
        KeyError: there is no such file.
    """
    return _text("languages", f"{name}.toml")


def times_text() -> str:
    """The words of time of each language, in JSON: for a question they are to be read quickly."""
    return (_folder("languages") / "times.json").read_text(encoding="utf-8")


@cache
def word_lists() -> Mapping[str, Any]:
    """The words that texts are judged by, from ``languages/words.json``, which begins with what each list is."""
    found: Mapping[str, Any] = json.loads((_folder("languages") / "words.json").read_bytes())
    return found


@cache
def _files(folder: str) -> dict[str, Path]:
    top = _folder(folder)
    return {path.relative_to(top).as_posix(): path for path in top.rglob("*") if path.is_file()}


@cache
def _text(folder: str, name: str) -> str:
    return _files(folder)[name].read_text(encoding="utf-8")


def _folder(name: str) -> Path:
    places = (_PACKAGE / name, _PACKAGE / "_data" / name)
    return next(filter(Path.is_dir, places), _PACKAGE.parent / name)
