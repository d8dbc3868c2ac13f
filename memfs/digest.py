"""Digests of little data, without OpenSSL: to load it takes a quarter of the time in which Python starts.

Whoever digests megabytes takes ``hashlib``, which is several times as quick then.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["blake2b", "sha1", "sha256"]

if TYPE_CHECKING:
    from hashlib import blake2b, sha1, sha256
else:
    try:  # what ``hashlib`` itself falls back on
        from _blake2 import blake2b
        from _sha1 import sha1

        sha256 = import_module("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
    except ImportError:  # an interpreter that was built otherwise
        from hashlib import blake2b, sha1, sha256
