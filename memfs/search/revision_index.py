"""Indexes the items of one revision, and keeps what a search needs of files that revisions share.

Scores are those of an index made of nothing but that revision's items.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property

from memfs.catalog.facts import Catalog, maker
from memfs.model import Candidate, Problem, Query
from memfs.search import documents
from memfs.search.documents import IndexDocument
from memfs.search.engine import Asked
from memfs.search.memory import MemoryIndex
from memfs.search.merged_search import asked_of


class TreeIndex(MemoryIndex):
    """The items of one revision; nothing in it changes. May be used from several threads."""

    def __init__(self, held: Iterable[tuple[IndexDocument, str]]) -> None:
        """``held``: documents of which no two have one id, each with its content id."""
        super().__init__()
        self._files: list[tuple[str, str, str, int]] = []
        for document, blob in held:
            self.take(document.row, document.terms, document.length)
            self._files.append((document.row.path, document.row.id, blob, document.size))

    def __len__(self) -> int:
        return len(self._files)

    def files(self) -> Iterator[tuple[str, str, str, int]]:
        """Path, id, content id and bytes of every item's file."""
        return iter(self._files)

    @cached_property
    def blobs(self) -> dict[str, str]:
        """Id to content id."""
        return {key: blob for _, key, blob, _ in self._files}

    @cached_property
    def paths(self) -> dict[str, str]:
        """Id, in one case, to path."""
        return {key.casefold(): path for path, key, _, _ in self._files}

    # -- asking (memfs.store.reader.SearchTarget) -----------------------------------------------------------------
    @contextmanager
    def held(self) -> Iterator[None]:
        """One state: there is no other."""
        yield

    def search(self, query: Query, hidden: Collection[str] = (), asked: Asked | None = None) -> list[Candidate]:
        """The best ``query.limit`` items, best first, ties by id; see ``memfs.search.engine.Index``."""
        return super().search(query, hidden, asked or asked_of(query, [self]))


class DocumentCache:
    """What a search needs of the files of revisions, kept in the catalog. Shared by threads and processes."""

    def __init__(self, catalog: Catalog, made_by: str) -> None:
        """``made_by``: names the rules by which documents are made; those made by others are not found."""
        self._catalog = catalog
        self._maker = maker("document", f"{documents.FORM} {made_by}")

    def found(self, wanted: Mapping[str, str]) -> dict[str, IndexDocument | Problem]:
        """The documents that are kept of files (path to mark), by path; none where one is no document."""
        kept = self._catalog.found(self._maker, ((mark, json.dumps(path)) for path, mark in wanted.items()))
        with suppress(ValueError):
            return {path: documents.unpacked(path, one) for (_, at), one in kept.items() if (path := json.loads(at))}
        return {}

    def keep(self, made: Iterable[tuple[str, str, IndexDocument | Problem]]) -> None:
        """Keep documents, each with its file's path and mark."""
        self._catalog.keep(self._maker, {(mark, json.dumps(path)): documents.packed(one) for path, mark, one in made})
