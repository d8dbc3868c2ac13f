"""Load a workspace's own kinds, with their schemas, from ``configuration/kinds.yaml``.

A schema is vetted before it is used, and a file that is invalid is refused with its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memfs.format.codec import DOCUMENT_LIMIT, Codec
from memfs.format.schema import Schemas
from memfs.fs.tree import View
from memfs.fs.workspace_location import MEMORY_FOLDER
from memfs.model import BUILT_IN, Kind, KindTable, Layer

PATH = f"{MEMORY_FOLDER}/configuration/kinds.yaml"


def load_kinds(tree: View) -> tuple[KindTable, Schemas]:
    """The kinds a workspace knows, built-in and its own, and the schemas their items obey.

    Raises:
        ContentError, SettingInvalid: the file is invalid, or redefines a built-in kind.
        SchemaRefForbidden, SchemaTooComplex: a body schema could reach out or take unbounded time.
    """
    try:
        return kinds_in(tree.read(PATH, DOCUMENT_LIMIT).data)
    except FileNotFoundError:
        return kinds_in(None)


def kinds_in(data: bytes | None) -> tuple[KindTable, Schemas]:
    """The kinds that the content of such a file declares, beside the built-in ones; None where there is no file.

    Raises:
        As ``load_kinds``.
    """
    if data is None:
        return KindTable(), Schemas()
    document = Codec(Schemas(), KindTable()).read_document(data, PATH, "kinds")
    rows: Mapping[str, Mapping[str, Any]] = document.get("kinds", {})
    bodies = {name: row["body"] for name, row in rows.items() if "body" in row}
    return KindTable([*BUILT_IN, *(_kind(name, row) for name, row in rows.items())]), Schemas(bodies)


def _kind(name: str, row: Mapping[str, Any]) -> Kind:
    return Kind(
        name=name,
        layer=Layer(row["layer"]),
        description=row["description"],
        folder=row.get("folder", f"memories/{name}"),
        dated=row.get("dated", True),
        body=name if "body" in row else "",
        half_life_days=row.get("half_life_days", 0),
        retention_days=row.get("retention_days", 0),
    )
