"""A report is good to read, and nothing in a memory can leave the place where it is quoted (faults rows 17 and 18)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import settings as chosen
from hypothesis import strategies as st

from memfs.team.review_report import (
    LONGEST,
    FieldChange,
    ItemChange,
    Report,
    ReviewedDocument,
    ReviewFinding,
    block,
    code,
    markdown,
    summary,
    words,
)

HOSTILE = [
    "@everyone look at #1 and https://evil.example",
    "`code` ``` fence\n```\n# Heading\n",
    "<img src=x onerror=alert(1)> <!-- hidden -->",
    "![x](https://evil.example/p.png) [a](javascript:1)",
    "a | b\n|---|\n| c |",
    "\u202egnitide\u200b",
    "::error file=x::y\n::set-output name=a::b",
    "~~~\n</details>\n***bold***",
    "&lt;b&gt; &#64;ada www.evil.example ada@evil.example",
]


def report_of(text: str) -> Report:
    """A report that has a text wherever a memory's own words can be."""
    fields = (FieldChange(field=text, before=text, after=f"{text}!"), FieldChange(field="content", after=text * 9))
    return Report(
        base="a" * 40,
        head="b" * 40,
        title=text,
        items=(
            ItemChange(
                what="added",
                id=text,
                type=text,
                path=text,
                title=text,
                text=text,
                standing=text,
                trust=text,
                origin={"agent": text},
            ),
            ItemChange(what="changed", id=text, type=text, path=text, before=text, by=text, fields=fields),
        ),
        documents=(ReviewedDocument(what="changed", path=text, fields=fields),),
        findings=(
            ReviewFinding(severity="error", code="X", message=text, path=text, line=3, id=text, other=text, hint=text),
        ),
    )


def outside(text: str) -> str:
    """What of a page is outside code blocks and code spans, as CommonMark defines them."""
    lines, fence = [], ""
    for line in text.split("\n"):
        mark = re.match(r" {0,6}(`{3,})([a-z]*)$", line)
        if fence:
            fence = "" if mark and mark[1] == fence and not mark[2] else fence
        elif mark:
            fence = mark[1]
        else:
            lines.append(re.sub(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", "CODE", line))
    assert not fence
    return "\n".join(lines)


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_in_a_memory_becomes_markup(text: str) -> None:
    """Mentions, links, images, headings, tables and HTML of a memory appear in code only (row 18)."""
    page = outside(markdown(report_of(text)))
    assert not re.search(r"[@<>`|\[\]~]|https?:|www\.|javascript|#\d|&\w*;", page), page
    headings = [line for line in page.split("\n") if line.startswith("#")]
    assert all(re.fullmatch(r"##+ (Memory review of CODE|[A-Z][a-z ]+)", line) for line in headings), headings
    assert "\u202e" not in page
    assert "\u200b" not in markdown(report_of(text))


@chosen(max_examples=80)
@given(st.text(alphabet=st.sampled_from("`@#<>[]()|*_~!&\\\n\r\t \u200b\u202eab1:/."), max_size=60))
def test_no_text_leaves_its_quotation(text: str) -> None:
    """Whatever a text holds, a code span and a block around it hold all of it, and a sentence is safe to show."""
    assert outside(code(text)) in ("CODE", code(text)) or set(text) <= set("`")
    first, *_, last = block(text)
    assert first.removesuffix("text") == last
    assert not any(line.lstrip().startswith(last) for line in block(text)[1:-1])
    assert not re.search(r"[@<>\[\]|*_~#&\\]", outside(words(text)))


def test_a_long_report_fits_a_comment() -> None:
    """A report is no longer than a comment on a pull request may be, and says what is missing."""
    items = [
        ItemChange(what="added", id=f"n{n}", type="semantic", path=f"p{n}", text="word " * 400) for n in range(400)
    ]
    text = markdown(Report(base="a", head="b", title="t", items=tuple(items)))
    assert len(text) <= LONGEST
    assert "400 added" in text
    assert "and more than there is room for" in text


def test_no_part_of_a_report_is_pushed_out_by_another() -> None:
    """A change full of long names, texts and fields keeps neither findings nor memories from being shown."""
    rows = "\n".join(f"{number} {'x' * 300}" for number in range(900))
    fields = tuple(FieldChange(field=f"data.f{n}", before=rows, after=rows.replace("x", "y")) for n in range(60))
    items = tuple(
        ItemChange(what=what, id=f"{what}-{n}", type="semantic", path="p" * 4_000, text="w " * 5_000, fields=fields)
        for what in ("added", "changed")
        for n in range(9)
    )
    found = tuple(
        ReviewFinding(severity="error", code="HiddenInstruction", message="m " * 400, path=f"{n}" + "p" * 4_000)
        for n in range(90)
    )
    page = markdown(Report(base="a", head="b", title="t", items=items, findings=found))
    assert len(page) <= LONGEST
    shown = {"Found": "`HiddenInstruction` in `0p", "Memories": "`added-0`"}
    for title, row in shown.items():
        assert row in page.partition(f"### {title}")[2]
    assert "more fields" in page or "`changed-0`" not in page


def test_fields_are_shown_by_value_or_as_a_difference() -> None:
    """Short values are shown beside each other; longer texts as the lines that differ."""
    long = "\n".join(f"line {number}" for number in range(30))
    change = ItemChange(
        what="changed",
        id="x",
        type="semantic",
        path="p",
        fields=(
            FieldChange(field="importance", before=1.0, after=2.0),
            FieldChange(field="tags", before=["a"]),
            FieldChange(field="content", before=long, after=long.replace("line 7", "line seven")),
            FieldChange(field="updated", before="a", after="b"),
        ),
    )
    text = markdown(Report(base="a", head="b", title="t", items=(change,)))
    assert "`importance`: `1.0` → `2.0`" in text
    assert '`tags`: `["a"]` → nothing' in text
    assert "    -line 7\n    +line seven\n" in text
    assert "line 20" not in text
    assert "`updated`" not in text


def test_one_line_sums_up() -> None:
    """What changed and what was found, in one line."""
    items = tuple(ItemChange(what=what, id=what, type="t", path="p") for what in ("added", "added", "superseded"))
    found = (
        ReviewFinding(severity="error", code="A", message="m"),
        ReviewFinding(severity="warning", code="B", message="m"),
    )
    report = Report(base="a", head="b", title="t", items=items, findings=found)
    assert summary(report) == "2 added, 1 superseded; 1 error, 1 warning"
    assert "Do not merge it" in markdown(report)
