"""Whatever is written reads back as the same, or is refused (faults row 9)."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from memfs.errors import ContentError, MemfsError
from memfs.format import yaml_text
from memfs.format.codec import Codec
from memfs.format.plain import same
from memfs.format.schema import Schemas
from memfs.model.item import Link, MemoryItem, Origin, Phase, Trust
from memfs.model.kinds import KindTable

CODEC = Codec(Schemas(), KindTable())
PLACE = "ContextMemory/memories/semantic/2026-03/x"
FALLBACK = datetime(2025, 1, 2, tzinfo=UTC)
PIECES = [
    *"aZ \n\t:#-'\"\\[]{},&*!|>%@`?~=01.exo_+yn\r\0é日😀",
    *(
        "\x85",
        "\u2028",
        "\u2029",
        "\ufeff",
        "\u200b",
        "\u202e",
        "\xa0",
        "\x07",
        "\x7f",
        "\ufffe",
        "\ud800",
        "\U000e0041",
    ),
    *(
        "no",
        "null",
        "true",
        "<<",
        "---",
        "...",
        "\n\n",
        "  ",
        "1:30",
        "2024-01-01",
        ".inf",
        "a: b",
        " #",
        "\r\n",
        "👩\u200d💻",
    ),
]


def random_text(source: random.Random) -> str:
    """Up to ten awkward pieces."""
    return "".join(source.choice(PIECES) for _ in range(source.randint(0, 10)))


def test_row_9_twenty_thousand_random_texts_survive_or_are_refused() -> None:
    """As content, title, tag, key and value, in YAML and JSON: equal after reading, or an error before writing."""
    source = random.Random(20_000)
    kept = refused = hidden = 0
    for number in range(2_000):
        many = [text for text in (random_text(source) for _ in range(9)) if number % 4 or not hides(text)]
        item = MemoryItem(
            content=random_text(source) or "x",
            context={f"k{text}": text for text in many[:4]},
            metadata={"list": many[4:]},
        )
        path = PLACE + source.choice((".yaml", ".json"))
        try:
            data = CODEC.write(item, path).data
        except ContentError:
            refused += 1
            continue
        finally:
            hidden += hides(item.content) or any(map(hides, many))
        back = CODEC.read(data, path, FALLBACK)
        assert (back.content, back.context, back.metadata) == (item.content, item.context, item.metadata)
        kept += 1
    assert kept > 200
    assert refused == hidden > 200


def hides(text: str) -> bool:
    """Whether a text holds one of the pieces that are refused."""
    return any(character in text for character in ("\0", "\ud800", "\u202e", "\U000e0041"))


visible = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0")
    | st.sampled_from([" ", "\n", "\t", ":", "#", "'", '"', "-", "\r", "\x85", "\u2028", "0", "1", ".", "e"]),
    max_size=40,
)
keys = st.text(min_size=1, max_size=12).filter(lambda text: "\0" not in text) | st.sampled_from(
    ["no", "1", "a b", "<<"]
)
scalars: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | visible
)
plain_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
line = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp"]), max_size=30)
moments = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
items = st.builds(
    MemoryItem,
    content=visible.map(lambda text: text or "x"),
    title=line,
    tags=st.lists(line.filter(bool), max_size=4).map(tuple),
    timestamp=st.none() | moments,
    created=st.none() | moments,
    updated=st.none() | moments,
    expires=st.none() | moments,
    origin=st.builds(
        Origin,
        speaker=line,
        agent=line,
        session=line,
        sequence=st.none() | st.integers(0, 10**6),
        phase=st.sampled_from(["", *(phase.value for phase in Phase)]),
    ),
    trust=st.sampled_from([trust.value for trust in Trust]),
    importance=st.floats(0, 10) | st.integers(0, 10),
    pinned=st.booleans(),
    status=line,
    supersedes=st.lists(st.sampled_from(["a", "b-1", "no", "010"]), unique=True).map(tuple),
    links=st.lists(st.builds(Link, to=st.sampled_from(["a", "1", "y"]), relation=line.filter(bool)), max_size=3).map(
        tuple
    ),
    context=st.dictionaries(keys, plain_values, max_size=3),
    metadata=st.dictionaries(keys, plain_values, max_size=3),
    data=st.dictionaries(keys, plain_values, max_size=2),
)


@given(item=items, suffix=st.sampled_from([".yaml", ".json"]))
def test_write_then_read_gives_the_same_item(item: MemoryItem, suffix: str) -> None:
    """Any item that is not refused comes back equal; one without a time gets that of its creation."""
    try:
        data = CODEC.write(item, PLACE + suffix).data
    except MemfsError:
        return
    back = CODEC.read(data, PLACE + suffix, FALLBACK)

    assert back.replace(id="", path="", sha256="") == item.replace(timestamp=item.timestamp or item.created or FALLBACK)
    assert CODEC.write(back, PLACE + suffix, data).data == data or item.timestamp is item.created is None


@given(st.dictionaries(keys, plain_values, max_size=4))
def test_written_yaml_means_the_same_to_yaml_1_1_readers(value: dict[str, Any]) -> None:
    """PyYAML's own loader, which reads YAML 1.1, gets the very same values; on one line as well."""
    written = yaml_text.document(value)

    assert same(yaml_text.load(written), value)
    assert same(yaml.load(written, yaml.CSafeLoader), value)
    assert same(yaml_text.load(f"a: {yaml_text.flow(value)}\n"), {"a": value})


@given(
    st.lists(
        st.sampled_from([*"ab:-?#&*!|>'\"%@`[]{},\n \t\\~0.", "\r\n", "---", "<<", "é", ": ", "\n- "]), max_size=30
    )
)
def test_any_text_is_read_or_refused_with_a_line(pieces: list[str]) -> None:
    """Both passes accept the same texts, and no foreign exception comes out."""
    first, second = (outcome(read, "".join(pieces)) for read in (yaml_text.load, yaml_text.tree))

    assert first == second
    assert first[1]


def outcome(read: Callable[[str], Any], text: str) -> tuple[str, int | None]:
    """The error's name and line, or ``read``."""
    try:
        read(text)
    except ContentError as error:
        return error.code, error.line
    return "read", 1


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """Garbage never raises anything but our errors."""
    for suffix in (".yaml", ".json"):
        path = PLACE + suffix
        found = CODEC.errors(data, path)
        assert all(isinstance(error, ContentError) and error.path == path for error in found)


@given(moments, st.integers(-14 * 60, 14 * 60))
def test_times_keep_their_moment_whatever_the_offset(moment: datetime, minutes: int) -> None:
    """A time written with an offset is the same moment in UTC."""
    shifted = moment + timedelta(minutes=minutes)
    sign, rest = ("+" if minutes >= 0 else "-"), abs(minutes)
    written = f"{shifted.replace(tzinfo=None).isoformat()}{sign}{rest // 60:02}:{rest % 60:02}"

    assert CODEC.read(f"title: x\ncreated: {written}\n".encode(), PLACE + ".yaml", FALLBACK).created == moment
