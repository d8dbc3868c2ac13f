"""Review concealment: a report that shows no secret, wherever in it one would stand (B4, B6).

Owns that every text of a report is looked through, not only those of its findings: a report lands on pages that more
people read than the repository. Finds nothing itself; the rules are ``memfs.files.secrets_rules``'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from memfs.files.redaction import redacted, redacted_value
from memfs.teams.reviewvalues import FieldChange, Report


def concealed(report: Report) -> Report:
    """The report with the name of a rule in place of each secret."""
    shown: Report = _concealed(report)
    return replace(shown, base=report.base, head=report.head)


def _concealed(value: Any) -> Any:
    if isinstance(value, FieldChange):
        key = value.field.rpartition(".")[2]
        sides = {name: redacted_value(getattr(value, name), key) for name in ("before", "after")}
        return FieldChange(field=redacted(value.field), **sides)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: _concealed(getattr(value, one.name)) for one in fields(value)})
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, tuple):
        return tuple(map(_concealed, value))
    return redacted_value(value) if isinstance(value, Mapping) else value
