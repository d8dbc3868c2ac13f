"""The quick validator, in compiled code, where the extra ``fast`` is installed; the only module that imports it.

It decides valid or invalid; what is wrong is told by ``memfs.files.schema``, which must agree (a test holds them to
it).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def quick_check(
    schema: Mapping[str, Any], formats: Mapping[str, Callable[[str], bool]]
) -> Callable[[Any], bool] | None:
    """A function that says whether a value fits the schema; None where the package is not installed."""
    try:
        import jsonschema_rs  # optional, and only wanted once something is validated
    except ImportError:
        return None
    validator = jsonschema_rs.Draft202012Validator(
        dict(schema),
        formats=dict(formats),
        validate_formats=True,
        retriever=_refuse,
        pattern_options=jsonschema_rs.RegexOptions(),
    )
    check: Callable[[Any], bool] = validator.is_valid
    return check


def _refuse(address: str) -> Any:
    raise ValueError(f"schemas are never fetched: {address}")
