"""Occasion: how a part says that something happened, without knowing what will be done about it.

Owns the shape of the callable that parts are given. Which occasions there are stands in ``memfs.occasions``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Facts = Mapping[str, Any]
Fire = Callable[[str, Facts], object]
"""Raises an occasion, by its name, with its facts."""
