"""Read the Markdown notes of basic-memory, with their observations and relations.

Front matter has ``title``, ``type``, ``permalink`` and ``tags``; list items are ``[category] text #tag (context)``
and ``relation [[Other note]]``. A note is one memory, whole as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from memfs.doors.importers.markdown import front_matter, link_names, passages, texts_of
from memfs.doors.importers.source_files import SourceContent, SourcePage, line_of, moment, tags_of

NAME = "basic-memory"
_OWN = frozenset({"title", "type", "permalink", "tags", "created", "modified", "created_at", "updated_at"})
_OBSERVATION = re.compile(r"\[([^\[\]()\n]{1,100})\]\s+(\S.*)")
_NO_CATEGORY = re.compile(r"[ xX]|[^\w]|\d{1,3}(:\d{2}){1,2}([.,]\d+)?")
_TAGS = re.compile(r"(?<!\S)#(\S+)")
_DIRECTIVE = "bm:"
_RELATION = re.compile(r"(?:\"([^\"\n]+)\"|'([^'\n]+)'|(\S+))\s+\[\[([^\[\]\n]+)\]\]\s*(?:\((.*)\))?")
_LINK = re.compile(r"\[\[([^\[\]\n]{1,300})\]\]")
_MOST = 1_000


def is_note(found: SourcePage) -> bool:
    """Whether a file is a note of basic-memory, by its front matter or its observations."""
    fields, body, _ = front_matter(found.text)
    if "permalink" in fields:
        return True
    return "title" in fields and any(
        _observation(one.text).get("category") for one in passages(body) if one.sort == "item"
    )


def read(path: Path) -> SourceContent:
    """The notes of a folder, or one note.

    Raises:
        StorageIO, ContentError: it cannot be read.
    """
    taken = SourceContent(NAME)
    found = taken.pages(path)
    keys = link_names(found, "permalink", "title")
    for one in found:
        if one.text.strip():
            _take(one, keys, taken)
        else:
            taken.skip(one.name, "it is empty")
    return taken


def _take(one: SourcePage, keys: dict[str, str], taken: SourceContent) -> None:
    fields, body, line = front_matter(one.text)
    said, relations = _said(body)
    permalink, sort = line_of(fields.get("permalink")), line_of(fields.get("type")) or "note"
    title = line_of(fields.get("title")) or one.stem
    written = moment(line_of(fields.get("modified")) or line_of(fields.get("updated_at")))
    began = moment(line_of(fields.get("created")) or line_of(fields.get("created_at")))
    tags = [*texts_of(fields.get("tags")), *(tag for observation in said for tag in observation.get("tags", ()))]
    data = {"permalink": permalink, "note_type": sort, "observations": said, "relations": relations}
    taken.take(
        body.strip("\n"),
        "note",
        title=title[:300],
        tags=tags_of(tags),
        timestamp=written or began or one.changed,
        metadata={name: value for name, value in fields.items() if name not in _OWN and line_of(value)},
        data={name: value for name, value in data.items() if value},
        where=f"{one.name}:{line}",
        key=one.name,
        name=one.stem,
        facts={"file": one.name, "id": permalink, "created": line_of(fields.get("created"))},
        links=_links(one, relations, keys, taken),
    )


def _links(
    one: SourcePage, relations: Iterable[dict[str, str]], keys: dict[str, str], taken: SourceContent
) -> Iterable[tuple[str, str]]:
    links: dict[tuple[str, str], None] = {}
    for relation in relations:
        aim = keys.get(relation["target"].casefold(), "")
        if not aim:
            taken.skip(one.name, f"the link {relation['type']} [[{relation['target']}]]: there is no such note")
        elif aim != one.name:
            links[(aim, relation["type"][:100])] = None
    return links


def _said(body: str) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """The observations and relations of a note."""
    observations: list[dict[str, Any]] = []
    relations: list[dict[str, str]] = []
    for passage in passages(body):
        for row in passage.text.split("\n") if passage.sort == "item" else ():
            shown = re.sub(r"^\s*[-*+]\s+", "", row).strip()
            if relation := _relation(shown):
                relations.append(relation)
            elif observation := _observation(shown):
                observations.append(observation)
    known = {relation["target"] for relation in relations}
    mentioned = [_target(name) for name in _LINK.findall(body)]
    relations += [
        {"type": "links_to", "target": name} for name in dict.fromkeys(mentioned) if name and name not in known
    ]
    return observations[:_MOST], relations[:_MOST]


def _relation(text: str) -> dict[str, str]:
    """A relation in its parts; nothing where prose goes on behind the link."""
    found = _RELATION.fullmatch(text)
    if found is None or not _target(found[4]) or not _is_one(found[5] or ""):
        return {}
    parts = {"type": found[1] or found[2] or found[3], "target": _target(found[4])}
    context = (found[5] or "").strip()
    return {**parts, "context": context} if context else parts


def _is_one(text: str) -> bool:
    """Whether the parentheses around a text belong together, none of its own left open or closed too often."""
    depth = 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return False
    return depth == 0


def _target(name: str) -> str:
    """What a link calls a note: without what is shown for it, and another project as a folder."""
    return name.partition("|")[0].strip().replace("::", "/", 1)


def _observation(text: str) -> dict[str, Any]:
    """An observation in its parts: it has a category or a tag; a task or a time of day is none."""
    line = text.partition("\n")[0].strip()
    found = _OBSERVATION.fullmatch(line)
    if found is not None and found[1].strip() and not _NO_CATEGORY.fullmatch(found[1].strip()):
        category, said = found[1].strip(), found[2].strip()
    elif _tags(line) and not re.match(r"\[.\] ", line):
        category, said = "", line
    else:
        return {}
    context = ""
    if said.endswith(")") and (start := said.rfind("(")) >= 0:
        said, context = said[:start].strip(), said[start + 1 : -1].strip()
    parts = {"category": category, "content": said, "tags": _tags(said), "context": context}
    return {name: value for name, value in parts.items() if value}


def _tags(text: str) -> list[str]:
    """The tags in a text, ``#one#two`` two of them; the format's own directives are none."""
    found = [tag for word in _TAGS.findall(text) for tag in word.split("#") if tag]
    return [tag for tag in dict.fromkeys(found) if not tag.startswith(_DIRECTIVE)]
