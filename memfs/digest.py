"""Digests of little data, without OpenSSL: to load it takes a quarter of the time in which Python starts.

Whoever digests megabytes takes ``hashlib``, which is several times as quick then.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

__all__ = ["blake2b", "sha1", "sha256"]

if TYPE_CHECKING:
    from hashlib import blake2b, sha1, sha256
else:
    try:  # what ``hashlib`` itself falls back on
        from _blake2 import blake2b
        from _sha1 import sha1

        if sys.version_info >= (3, 12):
            from _sha2 import sha256
        else:
            from _sha256 import sha256
    except ImportError:  # an interpreter that was built otherwise
        from hashlib import blake2b, sha1, sha256
