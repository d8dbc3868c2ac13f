"""The one tree of errors memfs raises.

Every error names what is wrong, where (path, line, column, field) and what to do about it. Library code raises these;
only the doors print them. A ``Problem`` is what is wrong as a value.
"""

from __future__ import annotations

from memfs.dataclass import dataclass


class MemfsError(Exception):
    """Base of every error memfs raises on purpose.

    Args:
        message: one sentence saying what is wrong, without the location.
        path: the file concerned, relative to the workspace where it has one.
        line, column: 1-based position in that file.
        field: dotted name of the field concerned, such as ``origin.agent`` or ``tags.1``.
        hint: what to do about it.

    Attributes:
        also: what else is wrong with the same file or value.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        line: int | None = None,
        column: int | None = None,
        field: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.path, self.line = message, path, line
        self.column, self.field, self.hint = column, field, hint
        self.also: tuple[MemfsError, ...] = ()

    @property
    def code(self) -> str:
        """The error's stable name, for scripts."""
        return type(self).__name__

    @property
    def sentence(self) -> str:
        """What is wrong, after the field concerned where the message does not name it itself."""
        named = not self.field or repr(self.field) in self.message
        return self.message if named else f"{self.field}: {self.message}"

    def located(self, path: str) -> MemfsError:
        """Fill in the path where it is still unknown and return the error itself."""
        for error in (self, *self.also):
            if error.path is None:
                error.path = path
        return self

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.path, self.line, self.column) if part is not None)
        hint = f" ({self.hint})" if self.hint else ""
        also = "".join(f"; {error.sentence}" for error in self.also)
        return f"{place + ': ' if place else ''}{self.sentence}{hint}{also}"


# -- content of a file --------------------------------------------------------------------------------------------
class ContentError(MemfsError):
    """A file's bytes are not a valid item or document."""


class ItemSyntaxError(ContentError):
    """The bytes are not the YAML or JSON that memfs reads."""


class ItemTooDeep(ContentError):
    """Collections are nested deeper than the limit."""


class ItemTooLarge(ContentError):
    """The file is larger than its kind allows."""


class AliasForbidden(ContentError):
    """The file uses YAML anchors or aliases."""


class TagForbidden(ContentError):
    """The file uses a YAML tag."""


class DuplicateKey(ContentError):
    """A mapping names the same key twice."""


class SchemaInvalid(ContentError):
    """A field does not have the shape its schema demands."""


class InvisibleCharacter(ContentError):
    """The text holds characters that a reader cannot see and that can hide instructions."""


class SecretDetected(ContentError):
    """The text holds what looks like a key, password or token."""


class CorruptItem(ContentError):
    """A file's bytes changed although no process wrote it: the disk lost or flipped some."""


# -- schemas ------------------------------------------------------------------------------------------------------
class SchemaRefForbidden(MemfsError):
    """A schema refers to something outside the bundled schemas."""


# -- names and places ---------------------------------------------------------------------------------------------
class IdInvalid(MemfsError):
    """An id could not be a safe file name everywhere."""


class IdExists(MemfsError):
    """A create-only write found the id taken."""


class DuplicateId(MemfsError):
    """Two files claim the same id."""


class ItemNotFound(MemfsError):
    """No item has that id."""


class PathEscape(MemfsError):
    """A path leads out of the workspace."""


class NotRegularFile(MemfsError):
    """A link, folder, device or pipe is where a file is expected."""


class WorkspaceNotFound(MemfsError):
    """No folder at or above the given path holds ``ContextMemory/``."""


class WorkspaceClosed(MemfsError):
    """The workspace, or the facade over it, was closed before."""

    def __init__(self, what: str = "this workspace", path: str | None = None) -> None:
        super().__init__(f"{what} was closed", path=path, hint="open it again")


class SettingInvalid(MemfsError):
    """A setting has an unknown name or a wrong value."""


class FormatUnsupported(MemfsError):
    """The workspace was written in a format this version does not know."""


# -- writing ------------------------------------------------------------------------------------------------------
class Conflict(MemfsError):
    """The file is not what the writer last read; ``current`` is its sha256, "" when it is absent.

    ``lasting`` is true where reading it again and writing would be refused as well.
    """

    def __init__(
        self,
        message: str,
        *,
        current: str = "",
        path: str | None = None,
        hint: str | None = None,
        lasting: bool = False,
    ) -> None:
        super().__init__(message, path=path, hint=hint)
        self.current, self.lasting = current, lasting


class LockTimeout(MemfsError):
    """Another process held a lock for too long."""


class StorageIO(MemfsError):
    """The operating system refused to read or write."""


class StorageFull(StorageIO):
    """The disk has no room left."""


class StorageReadOnly(StorageIO):
    """The file system or file cannot be written."""


class StorageUnavailable(StorageIO):
    """Neither the workspace nor its secondary location could take a write."""


class WritePending(StorageIO):
    """A write failed half-way and could not be taken back: it may be carried out all the same."""

    @classmethod
    def of(cls, error: MemfsError) -> WritePending:
        """The error to raise in place of the one that stopped a write."""
        return cls(
            f"{error.message}, and what was begun could not be taken back",
            path=error.path,
            hint="it is pending: the next write finishes it; look whether it is there before you repeat it",
        )


class QuotaExceeded(StorageIO):
    """A write would take more room than its area may have."""


class CorruptRecord(MemfsError):
    """A file of memfs's own, outside the workspace, cannot be read."""


class JournalDamaged(CorruptRecord):
    """A record in the middle of the journal cannot be read."""


class BackupInvalid(CorruptRecord):
    """A backup is damaged, or holds what no backup may hold."""


class ArchiveInvalid(CorruptRecord):
    """An archive is damaged, or lacks the payload that holds a document."""


class CheckpointInvalid(CorruptRecord):
    """A checkpoint is damaged, lacks its payload, or is not there."""


# -- history ------------------------------------------------------------------------------------------------------
class HistoryError(MemfsError):
    """Something about the git repository."""


class GitFailed(HistoryError):
    """A git command ended with an error."""


class GitBusy(HistoryError):
    """A person is in the middle of something; commits wait."""


class HistoryUnavailable(HistoryError):
    """The revision does not exist, or its objects are gone."""


class RepoUnsupported(HistoryError):
    """The repository is of a sort memfs does not handle."""


class RepoUntrusted(HistoryError):
    """The repository belongs to another user."""


class MergeRefused(HistoryError):
    """Two lines of history cannot be joined by memfs."""


class RemoteInvalid(HistoryError):
    """There is no such remote, or memfs does not connect to its address."""


class RemoteUnreachable(HistoryError):
    """A remote did not answer, or refused access."""


class RemoteRewritten(HistoryError):
    """A remote's branch no longer holds what it held when it was last seen."""


class PushRefused(HistoryError):
    """A remote does not take what is to be pushed."""


class BranchRefused(HistoryError):
    """The memory's own branch cannot be made or taken up in the present state."""


class SigningFailed(HistoryError):
    """A commit cannot be signed, or signatures cannot be checked."""


class EraseRefused(HistoryError):
    """History cannot be rewritten in its present state."""


class DeinitRefused(HistoryError):
    """memfs cannot be removed from a repository now: something would be lost, or is in use."""


class AttributeConflict(HistoryError):
    """Git attributes outside ``ContextMemory/`` would change the bytes of memory files."""


# -- recall -------------------------------------------------------------------------------------------------------
class QueryInvalid(MemfsError):
    """A query or filter cannot be understood."""


class IndexUnavailable(MemfsError):
    """The chosen search engine cannot be used."""


# -- state documents ----------------------------------------------------------------------------------------------
class TokenInvalid(MemfsError):
    """A continuation token cannot be resumed: unknown, superseded, used up or expired."""


class IterationInvalid(MemfsError):
    """An iteration is not there, is closed, or has been archived."""


# -- models -------------------------------------------------------------------------------------------------------
class EndpointFailed(MemfsError):
    """A model's service did not answer, or not usably."""


class ExtraMissing(MemfsError):
    """A setting or a door needs an optional package that is not installed; the hint names what to install."""

    @classmethod
    def of(cls, what: str, extra: str, packages: tuple[str, ...], error: ImportError) -> ImportError | ExtraMissing:
        """The error to raise where an import failed: the same, where it is a fault of memfs's own."""
        if str(error.name).partition(".")[0] not in packages:
            return error
        return cls(
            f"{what} needs packages that are not installed, or newer ones", hint=f"pip install 'gitmemfs[{extra}]'"
        )


ERROR = "error"
WARNING = "warning"
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One finding: where, what, and what to do.

    Attributes:
        path: the file, below the workspace; "" when it is about the workspace itself.
        code: stable name, the error's class name where an error was behind it.
        message: what is wrong.
        line: 1-based, None where there is none.
        hint: what to do.
        severity: ``error`` (something does not work), ``warning`` (it works, but look) or ``unknown``
            (it is not known).
    """

    path: str
    code: str
    message: str
    line: int | None = None
    hint: str = ""
    severity: str = ERROR

    @classmethod
    def of(cls, error: MemfsError, path: str = "", severity: str = ERROR) -> Problem:
        """The problem an error describes."""
        return cls(
            path=error.path or path,
            code=error.code,
            message=error.sentence,
            line=error.line,
            hint=error.hint or "",
            severity=severity,
        )

    @classmethod
    def warning(cls, path: str, code: str, message: str, hint: str = "", *, line: int | None = None) -> Problem:
        """Something that works, and is worth a look."""
        return cls(path=path, code=code, message=message, line=line, hint=hint, severity=WARNING)
