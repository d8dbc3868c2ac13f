"""A spliced file says exactly what was meant, and keeps what was not touched."""

from __future__ import annotations

import random
import re
from typing import Any

from memfs.errors import ContentError
from memfs.format import splice, yaml_text
from memfs.format.codec import parse, render
from memfs.format.plain import same
from memfs.format.yaml_text import Node

WORDS = [
    "alpha", "beta gamma", "no", "1.10", "x: y", "# hash", "two\nlines", "two\nlines\n", "open\n\n", "  lead\nx",
    "tab\tx", "é😀", "", "'q'", '"d"', "end:", "- dash", "a\n\nb\n", "trail \nx\n", "\u2028z",
]  # fmt: skip


class Maker:
    """Makes random mappings, hand-made layouts of them, and changes."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.comments = 0

    def value(self, depth: int = 0) -> Any:
        roll = self.random.random()
        if depth > 2 or roll < 0.5:
            return self.random.choice(WORDS)
        if roll < 0.6:
            return self.random.choice([1, 2.5, True, None, -3])
        if roll < 0.8:
            return [self.value(depth + 1) for _ in range(self.random.randint(0, 4))]
        return {self.random.choice("abcdefgh"): self.value(depth + 1) for _ in range(self.random.randint(0, 4))}

    def mapping(self) -> dict[str, Any]:
        return {key: self.value() for key in self.random.sample("abcdefgh", self.random.randint(1, 5))}

    def changed(self, value: Any, depth: int = 0) -> Any:
        if isinstance(value, dict):
            kept = {key: part for key, part in value.items() if self.random.random() > 0.15}
            result = {
                key: self.changed(part, depth + 1) if self.random.random() < 0.4 else part for key, part in kept.items()
            }
            if self.random.random() < 0.3:
                result[self.random.choice("ijkl")] = self.value(depth + 1)
            return result
        if isinstance(value, list):
            result = [part for part in value if self.random.random() > 0.2]
            if self.random.random() < 0.5:
                result.insert(self.random.randint(0, len(result)), self.value(depth + 1))
            return result
        return self.value(depth + 1)

    def decorated(self, text: str) -> str:
        """The text as a person might have left it: comments, blank lines, CRLF, no last newline."""
        root = yaml_text.tree(text)
        begins, inside = entry_lines(root), scalar_lines(root, text)
        lines = ["# heading"] if self.random.random() < 0.5 else []
        for number, written in enumerate(text.split("\n")[:-1], 1):
            if number in begins and self.random.random() < 0.25:
                lines.append(" " * (len(written) - len(written.lstrip(" "))) + self.comment())
            lines.append(
                written + (f"  {self.comment()}" if number not in inside and self.random.random() < 0.15 else "")
            )
            if not {number, number + 1} & inside and self.random.random() < 0.07:
                lines.append("")
        newline = "\r\n" if self.random.random() < 0.2 else "\n"
        return newline.join(lines) + (newline if self.random.random() < 0.8 else "")

    def comment(self) -> str:
        self.comments += 1
        return f"# comment {self.comments};"


def entry_lines(node: Node) -> set[int]:
    """Lines on which a key begins."""
    found = {entry.line for entry in node.entries}
    for part in (*node.items, *(entry.value for entry in node.entries)):
        found |= entry_lines(part)
    return found


def scalar_lines(node: Node, text: str) -> set[int]:
    """Lines that belong to a text of several lines."""
    found: set[int] = set()
    if node.kind == "scalar" and (node.style == "block" or "\n" in text[node.start : node.end]):
        found = set(range(node.line, text.count("\n", 0, node.end) + 1))
    for part in (*node.items, *(entry.value for entry in node.entries)):
        found |= scalar_lines(part, text)
    return found


def test_splices_mean_what_was_meant_and_keep_untouched_fields() -> None:
    """1,500 random changes read back as meant, leave other fields and comments, and hardly ever need a rewrite."""
    maker = Maker(7)
    tried = rewritten = 0
    while tried < 1_500:
        before = maker.mapping()
        text = maker.decorated(yaml_text.document(before))
        try:
            parsed = parse(text.encode(), "x.yaml")
        except ContentError:  # a comment put where it breaks the text does not test splicing
            continue
        after = maker.changed(parsed.mapping)
        if not after:
            continue
        tried += 1
        encoded = render(after, "x.yaml", parsed, {})
        assert same(parse(encoded.data, "x.yaml").mapping, after)
        if encoded.rewritten:
            rewritten += 1
        else:
            assert_untouched(text, encoded.data.decode(), parsed.mapping, after)
    assert rewritten < tried / 200


def test_whole_lines_are_replaced_as_splices_would() -> None:
    """Of 3,000 random changes, what whole lines can say is what a splice with all positions makes."""
    maker = Maker(11)
    tried = replaced = 0
    while tried < 3_000:
        before = maker.mapping()
        text = yaml_text.document(before)
        text = maker.decorated(text) if maker.random.random() < 0.5 else text
        try:
            old = parse(text.encode(), "x.yaml").mapping
        except ContentError:
            continue
        new = {key: maker.value(2) if maker.random.random() < 0.5 else part for key, part in old.items()}
        new |= {key: maker.value(2) for key in maker.random.sample("ijkl", maker.random.randint(0, 2))}
        for key in maker.random.sample(list(old), maker.random.randint(0, 1)):
            del new[key]
        order = {key: {} for key in maker.random.sample("abcdefghijkl", maker.random.choice((0, 6, 12)))}
        lines = splice.replace_lines(text, old, new, order)
        tried += 1
        if lines is not None and new:
            replaced += 1
            assert lines == splice.splice(text, yaml_text.tree(text), old, new, order)
    assert replaced > 300


def assert_untouched(before: str, after: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Each field that did not change is as it was; comments outside changed fields are all there."""
    root = yaml_text.tree(before)
    for entry in root.entries:
        if entry.key in new and same(old[entry.key], new[entry.key]) and entry.value.style != "block":
            assert before[entry.start : entry.value.end] in after
    touched = "".join(
        before[entry.start : following]
        for entry, following in zip(
            root.entries, [*(later.start for later in root.entries[1:]), len(before)], strict=True
        )
        if entry.key not in new or not same(old[entry.key], new[entry.key])
    )
    kept = set(re.findall(r"# comment \d+;", before)) - set(re.findall(r"# comment \d+;", touched))
    assert kept <= set(re.findall(r"# comment \d+;", after))
