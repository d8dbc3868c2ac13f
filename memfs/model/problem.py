"""Problem: something wrong in a workspace, with its place and its remedy, as a value."""

from __future__ import annotations

from memfs.dataclass import dataclass
from memfs.errors import MemfsError

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
            (nobody can tell).
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
