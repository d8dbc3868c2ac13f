"""Read ``AGENTS.md``, ``CLAUDE.md`` and their like as rules, wishes, procedures and facts.

What memfs itself wrote into them does not come back.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import Any

from memfs.context import agents_md
from memfs.doors.importers.markdown import (
    FILES,
    OWN_FILE,
    Passage,
    SourceContent,
    SourcePage,
    front_matter,
    is_file_name,
    passages,
    texts_of,
)
from memfs.errors import ContentError, MemfsError
from memfs.fs.workspace_location import home

NAME = "agents-md"
_ONLY_IMPORT = re.compile(r"(?:@[\w./~-]+\s*)+")
_MARKUP = re.compile(r"^[*_`>\s]+")
_DIRECTIVE = re.compile(
    r"(?:please )?(?:always|never|do not|don't|do|avoid|prefer|use|ensure|make sure|keep|write|run|add|follow|must|"
    r"only|put|name|place|test|check|document|commit|format|return|raise|handle|validate|import|export|define|declare|"
    r"create|update|remove|delete|ask|stop|start|treat|wrap|call|log|include|exclude|limit|set|read|consult|stick|favou?r|"
    r"verify|respect|cover|mock|pin|bump|open|close|rebase|squash|merge|push|deploy|no)\b",
    re.IGNORECASE,
)
_OBLIGES = re.compile(
    r"\b(?:must|should|shall|never|always|required|forbidden|not allowed|may not|do not|don't)\b", re.I
)
_WISHES = re.compile(r"prefer|style of (?:work|answer)|how (?:i|we) like|communication|tone|about me|personal", re.I)
_TASK = re.compile(r"\[([ xX])\]\s+(.*)", re.DOTALL)


def read(path: Path) -> SourceContent:
    """What a file says, or every such file of a folder; what a line imports by ``@path`` is named and not read.

    Raises:
        StorageIO, ContentError: it cannot be read.
    """
    taken = SourceContent(NAME)
    found = taken.pages(path, is_file_name)
    for one in found:
        _take(one, taken)
    if not found and not taken.skipped:
        raise ContentError("there is no file here that agents read", path=str(path), hint=f"such as {', '.join(FILES)}")
    return taken


def _take(one: SourcePage, taken: SourceContent) -> None:
    try:
        text = _without_block(one)
    except MemfsError as error:
        taken.skip(f"{one.name}:{error.line or 1}", error.message)
        return
    fields, body, line = front_matter(text)
    scope, own = _scope(one.name, fields), _is_own(one)
    for passage in passages(body, line):
        if _ONLY_IMPORT.fullmatch(passage.text):
            taken.skip(f"{one.name}:{passage.line}", f"it imports {passage.text.strip()}; name that to import it")
        else:
            _take_passage(one, passage, scope, own, taken)


def _without_block(one: SourcePage) -> str:
    """The text without the block that memfs keeps in it, with as many lines.

    Raises:
        ContentError: the block's marks are damaged.
    """
    data = one.text.encode()
    block = agents_md.find(data, one.name)
    if block is None:
        return one.text
    return (data[: block.start] + b"\n" * data.count(b"\n", block.start, block.end) + data[block.end :]).decode()


def _is_own(one: SourcePage) -> bool:
    """Whether a file is one person's own, and not the team's."""
    settings = Path(os.environ.get("CLAUDE_CONFIG_DIR") or home() / ".claude")
    return one.path.name == OWN_FILE or one.path.resolve().parent == settings.resolve()


def _take_passage(one: SourcePage, passage: Passage, scope: tuple[str, ...], own: bool, taken: SourceContent) -> None:
    where = f"{one.name}:{passage.line}"
    task = _TASK.fullmatch(passage.text) if passage.sort == "item" else None
    if task and task[1] != " ":
        taken.skip(where, "a task that is done")
        return
    kind = "prospective" if task else kind_of(passage, own)
    text = task[2] if task else passage.text
    title, section = passage.heading if passage.sort != "item" else "", " / ".join(passage.headings)
    taken.take(
        text,
        kind,
        title=title,
        status={"convention": "proposed", "prospective": "pending"}.get(kind, ""),
        data={"scope": list(scope)} if kind == "convention" and scope else {},
        where=where,
        key=f"{section}\n{scope}\n{passage.text}",
        name=title or _MARKUP.sub("", text),
        facts={"file": one.name, "line": passage.line, "section": section},
    )


def kind_of(passage: Passage, own: bool = False) -> str:
    """What a passage is: a procedure, a wish, a rule that the team may agree on, or a fact.

    Args:
        own: it is in one person's own file, where rules are wishes.
    """
    if passage.sort == "steps":
        return "procedural"
    if passage.sort != "item":
        return "knowledge"
    plain = _MARKUP.sub("", passage.text)
    obliges = bool(_DIRECTIVE.match(plain) or _OBLIGES.search(plain))
    if any(_WISHES.search(heading) for heading in passage.headings) or (own and obliges):
        return "preference"
    return "convention" if obliges else "knowledge"


def _scope(name: str, fields: dict[str, Any]) -> tuple[str, ...]:
    """The globs a file holds for: those it names, else its folder."""
    stated = texts_of(fields.get("paths")) or texts_of(fields.get("globs")) or texts_of(fields.get("applyTo"))
    if stated:
        return tuple(stated)
    folder = posixpath.dirname(name)
    return () if not folder or folder.startswith(".") or "/." in folder else (f"{folder}/**",)
