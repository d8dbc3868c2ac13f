"""What the Whoosh engine relies on in Whoosh, and how it keeps its segments."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pytest

from kit.corpus import FILTERS, WORDS, corpus, item
from memfs.errors import IndexUnavailable
from memfs.model import Query
from memfs.search import engine, terms, whoosh
from memfs.search.engine import MemoryIndex
from memfs.search.whoosh import WhooshIndex, blocks


def test_scores_are_those_of_the_reference_over_many_segments_and_deletions(tmp_path: Path) -> None:
    """Reading posting blocks gives the scores of the engine in memory, with deletions and several segments."""
    index, reference = WhooshIndex(tmp_path), MemoryIndex()
    for one in (index, reference):
        one.add(corpus(1200, 1))
        one.flush()
        one.add(each.replace(content=each.content + " pool") for each in corpus(1200, 1)[:100])
        one.remove([each.id for each in corpus(1200, 1)[500:560]])
        one.flush()
    assert index.segments > 1
    for word in WORDS:
        for name in ("none", "type and dates"):
            query = Query(text=f"{word} pool review unheard", limit=1000, **FILTERS[name])  # type: ignore[arg-type]
            worth = terms.weights(query.text)
            found = {hit.id: hit.similarity for hit in index.search(query, (), (worth, reference.statistics(worth)))}
            assert found == pytest.approx({hit.id: hit.similarity for hit in reference.search(query)}, rel=1e-9)
    index.close()


def test_kept_postings_are_read_once_and_never_outlive_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A term asked for again is not read again; after a change it is. Of more than may be kept the oldest goes."""
    read: list[str] = []
    monkeypatch.setattr(whoosh, "blocks", lambda leaf, term: read.append(term) or blocks(leaf, term))  # type: ignore[func-returns-value]
    index = WhooshIndex(tmp_path)
    index.add([item(f"n{number}", "pool review") for number in range(300)])
    for _ in range(2):
        assert len(index.search(Query(text="pool", limit=1000))) == 300
    assert read == ["pool"]
    index.add([item("n300", "pool")])
    index.remove(["n0"])
    found = index.search(Query(text="pool", limit=1000))
    assert "n300" in {hit.id for hit in found}
    assert len(found) == 300
    monkeypatch.setattr(engine, "_HELD_NUMBERS", 400)
    for word in ("review", "pool"):
        index.search(Query(text=word))
    assert read[-2:] == ["review", "pool"] or read[-4:] == ["review", "review", "pool", "pool"]
    index.close()


def test_many_small_flushes_leave_few_segments(tmp_path: Path) -> None:
    """However often it is flushed, a search reads at most four segments, and nothing is lost."""
    index = WhooshIndex(tmp_path)
    index.add(corpus(400))
    for number in range(30):
        index.add([item(f"fresh-{number:02d}", "xylophone")])
        index.flush()
        assert index.segments <= 4
    assert len(index.search(Query(text="xylophone", limit=100))) == 30
    assert index.count(Query()) == 430
    index.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Whoosh leaves the damaged file open
def test_damage_is_an_error_of_ours(tmp_path: Path) -> None:
    """Whatever Whoosh raises on damaged files becomes IndexUnavailable."""
    index = WhooshIndex(tmp_path)
    index.add(corpus(50))
    index.flush()
    index.close()
    for path in tmp_path.glob("*.toc"):
        path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(IndexUnavailable, match="whoosh"):
        WhooshIndex(tmp_path).search(Query(text="pool"))
    (tmp_path / "columns").write_bytes(b"nothing of ours")
    with pytest.raises(IndexUnavailable, match="damaged"):
        WhooshIndex(tmp_path).search(Query(text="pool"))
    gc.collect()  # closes that file now, not in the middle of another test


def test_rows_21_28_lost_numbers_are_damage_and_never_the_first_item(tmp_path: Path) -> None:
    """Without the file that says which documents a segment of Whoosh has nothing is found."""
    index = WhooshIndex(tmp_path)
    index.add(corpus(40))
    index.flush()
    index.close()
    (tmp_path / "segments").unlink()
    with pytest.raises(IndexUnavailable, match="whoosh"):
        index.search(Query(text="pool"))
    index.close()


def test_an_index_that_was_opened_in_part_is_never_taken_for_the_whole(tmp_path: Path) -> None:
    """Where the numbers of one segment are lost, each search says so, and not only the first."""
    index = WhooshIndex(tmp_path)
    for items in (corpus(40), [item("fresh", "pool")]):
        index.add(items)
        index.flush()
    index.close()
    known = json.loads((tmp_path / "segments").read_bytes())
    assert len(known) == 2
    known.pop(max(known, key=lambda name: known[name][0][0]))
    (tmp_path / "segments").write_text(json.dumps(known))
    for _ in range(2):
        with pytest.raises(IndexUnavailable, match="whoosh"):
            index.search(Query(text="pool"))
    index.close()
