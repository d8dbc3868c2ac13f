"""Asking the past, beside a fresh checkout of that commit that is indexed and asked, in the same run.

``python -m benchmarks.as_of [ITEMS] [ENGINE]`` makes a workspace of so many memories with some hundred commits on it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.corpus import Text, questions, read
from benchmarks.surroundings import git, hermetic
from memfs.model import Query
from memfs.search.generations import shared_folder
from memfs.team.asof import Travel
from memfs.workspace import Workspace, open_workspace

_COMMITS = 40
_AGAIN = 50
_WIDE = 8


def main(arguments: list[str]) -> int:
    """Measure, and print one line for each figure."""
    count = int(arguments[0]) if arguments else 1_000
    engine = arguments[1] if len(arguments) > 1 else "whoosh"
    corpus = read(count + _COMMITS, 1)
    asked = [Query(text=question.words) for question in questions(corpus.texts[:count], _AGAIN)]
    with hermetic(None) as folder:
        settings = {"index.engine": engine, "history.commit": "manual"}
        with open_workspace(folder / "w", create=True, watch=False, settings=settings) as workspace:
            _fill(workspace, corpus.texts, count)
            _measure(workspace, asked, folder, engine)
    return 0


def _fill(workspace: Workspace, texts: Sequence[Text], count: int) -> None:
    """All memories in one commit, then commits of one change each; one commit in their middle changes an eighth."""
    items = [text.item() for text in texts]
    with workspace.store.batch("all") as batch:
        stored = [batch.put(item) for item in items[:count]]
    workspace.store.flush()
    ids = [item.id for item in stored]
    for number, item in enumerate(items[count:]):
        some = ids[::_WIDE] if number == _COMMITS // 2 else ids[number : number + 1]
        with workspace.store.batch("some") as batch:
            for key in some:
                held = workspace.store.get(key)
                if held is not None:
                    batch.put(held.replace(content=f"{item.content[:200]} {held.content}"))
        workspace.store.flush()
    workspace.history.maintain()


def _measure(workspace: Workspace, asked: list[Query], folder: Path, engine: str) -> None:
    for path in (shared_folder(workspace.repository.common_dir) or workspace.root / "nowhere").iterdir():
        path.unlink()

    def ask(travel: Travel, revision: str) -> Callable[[], object]:
        return lambda: travel.at(revision).recall.search(asked[0])

    first = Travel(workspace.repository, workspace.settings)
    _print("first question ever, HEAD~3", _seconds(ask(first, "HEAD~3")))
    past = first.at("HEAD~3")
    _print(
        "another question, same process (mean)",
        _seconds(lambda: [past.recall.search(query) for query in asked]) / len(asked),
    )
    _print("a revision one commit away", _seconds(ask(first, "HEAD~4")))
    first.close()
    again = Travel(workspace.repository, workspace.settings)
    _print("first question of another process, HEAD~3", _seconds(ask(again, "HEAD~3")))
    _print("a revision in which an eighth differs, not met before", _seconds(ask(again, f"HEAD~{_COMMITS - 2}")))
    again.close()
    last = Travel(workspace.repository, workspace.settings)
    _print("the same from another process", _seconds(ask(last, f"HEAD~{_COMMITS - 2}")))
    last.close()
    _print(
        f"fresh checkout, index ({engine}) and question", _seconds(lambda: _fresh(workspace, folder, asked[0], engine))
    )


def _fresh(workspace: Workspace, folder: Path, query: Query, engine: str) -> None:
    place = folder / "fresh"
    git(workspace.root, "worktree", "add", "--quiet", "--detach", str(place), "HEAD~3")
    with open_workspace(place, watch=False, settings={"index.engine": engine}) as fresh:
        fresh.store.reindex()
        fresh.recaller.search(query)


def _seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _print(what: str, seconds: float) -> None:
    print(f"{what:<60} {seconds * 1e3:>10,.1f} ms", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
