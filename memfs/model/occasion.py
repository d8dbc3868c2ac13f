"""The type of the callable by which a part announces that something happened.

An announcement returns nothing, so no part depends on what reacts to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Facts = Mapping[str, Any]
Fire = Callable[[str, Facts], object]
"""Raises an occasion, by its name, with its facts."""
