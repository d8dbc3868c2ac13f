"""Forked: what a child that a program forks begins anew.

Owns which objects of this process hold locks or threads. A child has none of its parent's threads: a lock that one of
them held at that moment would be held for ever, and what only a thread does would never be done.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import TypeVar

_MAKERS = {type(threading.Lock()): threading.Lock, type(threading.RLock()): threading.RLock}
_RENEWING = "begin_anew_in_child"
_known: weakref.WeakSet[object] = weakref.WeakSet()

Part = TypeVar("Part")


def renewed_in_child(part: Part) -> Part:
    """Give an object new locks in each forked child, and call its ``begin_anew_in_child()`` where it has one.

    Its locks are the attributes that are a ``threading.Lock`` or ``RLock``.
    """
    _known.add(part)
    return part


def _renew() -> None:
    parts = list(_known)
    for part in parts:
        for name, value in vars(part).items():
            if (make := _MAKERS.get(type(value))) is not None:
                setattr(part, name, make())
    for part in parts:
        getattr(part, _RENEWING, _nothing)()


def _nothing() -> None:
    """An object that has nothing but locks."""


os.register_at_fork(after_in_child=_renew)
