"""Stems of words in many languages; the only module that imports the stemmers.

Snowball's are used, compiled where the extra ``fast`` installed PyStemmer, else in Python: the same rules, fifteen
times slower. One is loaded when a word of its language is first met.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from types import ModuleType
from typing import Any

LONGEST = 64
_NAMES = {
    "en": "english", "de": "german", "fr": "french", "es": "spanish", "pt": "portuguese", "it": "italian",
    "nl": "dutch", "sv": "swedish", "da": "danish", "no": "norwegian", "fi": "finnish", "pl": "polish",
    "cs": "czech", "hu": "hungarian", "ro": "romanian", "tr": "turkish", "ca": "catalan", "id": "indonesian",
    "ru": "russian", "el": "greek", "ar": "arabic", "fa": "persian", "hi": "hindi", "ta": "tamil", "hy": "armenian",
}  # fmt: skip
# The first and the last character of a script, and the language whose rules its words are cut by.
_SCRIPTS = (
    ("\u0370", "\u03ff", "el"), ("\u0400", "\u052f", "ru"), ("\u0531", "\u0587", "hy"), ("\u0620", "\u06ff", "ar"),
    ("\u0904", "\u0939", "hi"), ("\u0b80", "\u0bff", "ta"), ("\u1f00", "\u1fff", "el"),
)  # fmt: skip
# Letters of Ukrainian, Belarusian, Serbian and Macedonian, which Snowball does not know, and of Persian.
_OTHER_CYRILLIC = frozenset("іїєґўђјљњћџѓќѕ")
_PERSIAN = frozenset("پچژکگی")


def language_of(word: str) -> str:
    """The language whose rules cut a word, by its script; "" for Latin letters, which many languages write, and for
    scripts whose words have no rules.

    Args:
        word: in lower case.
    """
    first = word[:1]
    code = next((code for begin, end, code in _SCRIPTS if begin <= first <= end), "")
    if code == "ru" and not _OTHER_CYRILLIC.isdisjoint(word):
        return ""
    return "fa" if code == "ar" and not _PERSIAN.isdisjoint(word) else code


def stem(word: str, code: str = "en") -> str:
    """The stem of a word in lower case, accents kept; the word itself where there are no rules for its language."""
    if len(word) > LONGEST:
        return word
    return str(_stemmer(code)(word)) or word


@cache
def name() -> str:
    """Names the rules in force, found without importing those in Python: by the names and sizes of their
    programs.
    """
    compiled = _compiled()
    if compiled is not None:
        return f"compiled-{compiled.version()}"
    from importlib.util import find_spec  # the compiled rules name themselves

    package = find_spec("snowballstemmer")
    folders = package.submodule_search_locations if package is not None else None
    if not folders:
        return "unstemmed"
    with os.scandir(next(iter(folders))) as entries:
        programs = sorted(
            f"{entry.name} {entry.stat().st_size}" for entry in entries if entry.name.endswith("_stemmer.py")
        )
    return sha256("\n".join(programs).encode()).hexdigest()[:12]


@cache
def _compiled() -> ModuleType | None:
    try:
        return importlib.import_module("Stemmer")
    except ImportError:
        return None


@cache
def _stemmer(code: str) -> Callable[[str], Any]:
    """Importing one in Python costs up to 20 ms, which a start that searches nothing is spared."""
    called, compiled = _NAMES[code], _compiled()
    try:
        if compiled is not None:
            return compiled.Stemmer(called).stemWord  # type: ignore[no-any-return]
        module = importlib.import_module(f"snowballstemmer.{called}_stemmer")
    except (ImportError, KeyError):  # an older Snowball knows fewer languages
        return str
    return getattr(module, f"{called.title()}Stemmer")().stemWord  # type: ignore[no-any-return]
