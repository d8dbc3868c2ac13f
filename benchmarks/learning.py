"""Learning: drafts through the intake, answers through the retrieval pipeline, and what short memories weigh (C8)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from benchmarks.bench import Bench
from benchmarks.building import imported, weights
from benchmarks.corpus import Text
from benchmarks.rows import ANSWERED, INTAKE, SHORT, Row, timed
from benchmarks.samples import Samples
from memfs.model import Query
from memfs.workspace import Workspace

LETTERS = 100
"""How long the memories of the byte budget are; half of what people say in a conversation is shorter."""
_STORED, _ASKED, _WARM = 200, 200, 5
_TOKENS = 2_000
_LARGEST = 10_000


def intake(bench: Bench) -> Iterator[Row]:
    """Drafts that are filtered, reviewed, compared with what is there and stored, each beside a bare put."""
    bare, whole = Samples(), Samples()
    with bench.open(watch=True, review__threshold=0) as workspace:  # every draft is to be stored, to be measured alike
        for _ in range(_WARM):
            workspace.intake.store(bench.item())
        for _ in range(bench.rounds(_STORED)):
            known, draft = bench.item(), bench.item()
            bare.time(lambda known=known: workspace.store.put(known))  # type: ignore[misc]
            became = whole.time(lambda draft=draft: workspace.intake.store(draft))  # type: ignore[misc]
            if not became.stored:
                raise RuntimeError(f"a draft was not stored: {became.reason}")
        yield timed("intake", INTAKE, bench.size, bench.engine, whole, "a bare put", bare)
        yield from _answered(bench, workspace)


def _answered(bench: Bench, workspace: Workspace) -> Iterator[Row]:
    """Ten hits without repeats within a token budget: with the default ranking, and with that of what was learnt."""
    for name, strategy in ((ANSWERED, ""), (f"{ANSWERED}, ranked by use", "learning")):
        took = Samples()
        for number in range(_WARM + bench.rounds(_ASKED)):
            asked = Query(
                text=bench.query(number).text, limit=10, deduplicate=True, max_tokens=_TOKENS, strategy=strategy
            )
            found = took.time(lambda asked=asked: workspace.recaller.search(asked))  # type: ignore[misc]
            if not found.hits:
                raise RuntimeError(f"nothing found for {asked.text!r}, which is in a memory")
        yield timed("intake", name, bench.size, bench.engine, Samples(took.values[_WARM:]))


def short(bench: Bench) -> Iterator[Row]:
    """Bytes of a workspace of its own, whose memories are as short as most of those that agents keep."""
    if bench.size > _LARGEST:
        return
    folder = bench.folder / "short"
    folder.mkdir()
    small = replace(bench, folder=folder, texts=tuple(map(_shortened, bench.texts)))
    list(imported(small))
    yield from weights(small, "bytes", SHORT)


def _shortened(text: Text) -> Text:
    """The text up to the last whole word of its first hundred characters."""
    return replace(text, content=text.content[: LETTERS + 1].rpartition(" ")[0] or text.content[:LETTERS])
