"""Convention file: conventions of one workspace in one readable file, for others (seed 004, P7).

Owns the format (``docs/conventions.md``), version 1, and what of a convention travels: what it says, not who said it or
what it weighs here. What an import makes of it is ``memfs.pipeline.conventionsharing``'s business.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memfs.errors import ContentError, DuplicateId, FormatUnsupported, MemfsError, SchemaInvalid
from memfs.files.codec import Codec
from memfs.files.plain import canonical, plain
from memfs.files.rendering import parse
from memfs.model import MemoryItem
from memfs.model.ids import check_id
from memfs.model.time import format_time, parse_time
from memfs.pipeline.conventions import PROPOSED

FORMAT = "memfs-conventions"
VERSION = 1
SCHEMA = "shared_conventions"
LARGEST = 4 << 20
IMPORTED = "imported"
"""The key below ``metadata`` that says where a convention came from, and what it said then."""
_THEIR_OWN = frozenset({"accepted"})
"""What of the body each team says for itself: when it accepted it."""
_SUFFIXES = (".yaml", ".yml", ".json")
_HEADING = (
    "# Conventions of {name}, for other workspaces: 'memfs convention import' takes them in.\n"
    "# Whoever edits one by hand takes its sha256 out.\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a convention was imported from, and the digest of what it said then."""

    workspace: str
    id: str
    sha256: str = ""
    revision: str = ""

    @classmethod
    def of(cls, item: MemoryItem) -> Source | None:
        """What an item says of its import; None where it was not imported, or says nothing that has a sense."""
        written = item.metadata.get(IMPORTED)
        if not isinstance(written, Mapping):
            return None
        values = {name: written.get(name, "") for name in ("workspace", "id", "sha256", "revision")}
        if not all(isinstance(value, str) for value in values.values()) or not values["id"]:
            return None
        return cls(**values)

    def noted(self) -> dict[str, str]:
        """As an item says it."""
        values = {"workspace": self.workspace, "id": self.id, "sha256": self.sha256, "revision": self.revision}
        return {name: value for name, value in values.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """One convention of such a file: what travels of it."""

    id: str
    title: str = ""
    content: str = ""
    tags: tuple[str, ...] = ()
    expires: datetime | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    status: str = PROPOSED
    came_from: Source | None = None

    @classmethod
    def of(cls, item: MemoryItem) -> Shared:
        """What travels of an item."""
        return cls(
            id=item.id,
            title=item.title,
            content=item.content,
            tags=item.tags,
            expires=item.expires,
            data=item.data,
            status=item.status.strip() or PROPOSED,
            came_from=Source.of(item),
        )

    @property
    def sha256(self) -> str:
        """A digest of what it says: title, content, tags, expires and data, whatever its id and status."""
        return hashlib.sha256(canonical(plain(self._says())).encode()).hexdigest()

    def _says(self) -> dict[str, Any]:
        values = {
            "title": self.title,
            "content": self.content,
            "tags": list(self.tags),
            "expires": format_time(self.expires) if self.expires else "",
            "data": {name: value for name, value in self.data.items() if name not in _THEIR_OWN},
        }
        return {name: value for name, value in values.items() if value}

    def written(self) -> dict[str, Any]:
        """As the file has it."""
        origin = self.came_from
        back = {"workspace": origin.workspace, "id": origin.id, "sha256": origin.sha256} if origin else {}
        whole = bool(back) and all(back.values())
        return {
            "id": self.id,
            "status": self.status,
            **self._says(),
            **({"came_from": back} if whole else {}),
            "sha256": self.sha256,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFile:
    """A file of conventions: the workspace they come from, the commit that holds them, and they themselves."""

    workspace: str
    revision: str = ""
    conventions: tuple[Shared, ...] = ()

    def encode(self, codec: Codec, name: str) -> bytes:
        """Its bytes: the same for the same conventions of the same revision; YAML, or JSON by the name's ending.

        Raises:
            ContentError: they are too many, or too large.
        """
        document = {
            "format": FORMAT,
            "format_version": VERSION,
            "workspace": self.workspace,
            **({"revision": self.revision} if self.revision else {}),
            "conventions": [one.written() for one in self.conventions],
        }
        data = codec.write_document(document, _as_document(name), SCHEMA)
        if not _as_document(name).endswith(".json"):
            shown = self.workspace.encode("ascii", "replace").decode()
            data = _HEADING.format(name=shown).encode() + data
        if len(data) > LARGEST:
            raise ContentError(
                f"the conventions take {len(data):,} bytes, more than {LARGEST:,}", hint="export fewer of them"
            )
        return data

    @classmethod
    def decode(cls, data: bytes, name: str, codec: Codec) -> SharedFile:
        """What such a file holds.

        Raises:
            ContentError: it is none, or somebody changed a convention and left its digest; with line or field.
            FormatUnsupported: a newer version wrote it.
            DuplicateId: two of its conventions have one id.
        """
        path = _as_document(name)
        try:
            if len(data) > LARGEST:
                raise ContentError(f"{len(data):,} bytes, limit {LARGEST:,}", hint="this is no file of conventions")
            _refuse_other(parse(data, path).mapping)
            values = codec.read_document(data, path, SCHEMA)
            _refuse_unprintable(values["workspace"], "workspace")
            found = tuple(_shared(entry, at) for at, entry in enumerate(values["conventions"]))
            _refuse_twice(found)
        except MemfsError as error:
            error.path = name
            raise
        return cls(workspace=values["workspace"], revision=values.get("revision", ""), conventions=found)


def _as_document(name: str) -> str:
    """A name by whose ending the codec knows the format; YAML where it has none."""
    return name if name.endswith(_SUFFIXES) else f"{name}.yaml"


def _refuse_other(values: Mapping[str, Any]) -> None:
    if values.get("format") != FORMAT:
        raise SchemaInvalid(
            "this is no file of conventions", field="format", hint="'memfs convention export FILE' writes one"
        )
    version = values.get("format_version")
    if isinstance(version, int) and version > VERSION:
        raise FormatUnsupported(
            f"version {version} of the format is newer than {VERSION}", field="format_version", hint="update memfs"
        )


def _shared(values: Mapping[str, Any], at: int) -> Shared:
    where = f"conventions.{at}"
    back = values.get("came_from")
    if back:
        _refuse_unprintable(back["workspace"], f"{where}.came_from.workspace")
    found = Shared(
        id=check_id(values["id"]),
        title=values.get("title", ""),
        content=values.get("content", ""),
        tags=tuple(dict.fromkeys(values.get("tags", ()))),
        expires=parse_time(values["expires"]) if "expires" in values else None,
        data={name: value for name, value in values.get("data", {}).items() if name not in _THEIR_OWN},
        status=values.get("status", PROPOSED),
        came_from=Source(**back) if back else None,
    )
    if not (found.title.strip() or found.content.strip()):
        raise SchemaInvalid(f"{found.id} says nothing", field=where, hint="write content, a title, or both")
    if values.get("sha256", found.sha256) != found.sha256:
        raise ContentError(
            f"{found.id} is not what its sha256 says: somebody changed it",
            field=f"{where}.sha256",
            hint="export it again; or, where the change is wanted, take the sha256 out",
        )
    return found


def _refuse_unprintable(name: str, where: str) -> None:
    """The name of a workspace goes into commits and onto terminals."""
    if not name.isprintable() or not name.strip():
        raise SchemaInvalid(f"{ascii(name)[:60]} is no name for a workspace", field=where, hint="write one line")


def _refuse_twice(found: Iterable[Shared]) -> None:
    seen: set[str] = set()
    for one in found:
        if one.id.casefold() in seen:
            raise DuplicateId(f"{one.id!r} stands in it twice", field="conventions", hint="keep one of the two")
        seen.add(one.id.casefold())
