"""What a first question with Whoosh imports: each hook of an agent's session pays for it (design budget, C6)."""

from __future__ import annotations

import subprocess
import sys

_CODE = """
import sys, memfs.index.whoosh, whoosh.reading, whoosh.compat
print(*[name for name in ("asyncio", "ssl", "http.client", "email", "cached_property") if name in sys.modules])
assert sys.modules["whoosh.reading"] is whoosh.reading and sys.modules["whoosh.compat"] is whoosh.compat
import cached_property, urllib.request
assert hasattr(urllib.request, "urlopen") and hasattr(cached_property, "threaded_cached_property")
"""


def test_whoosh_brings_no_network_and_no_event_loop() -> None:
    """Whoosh is imported without what it never uses, and others import the very same modules whole."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", _CODE], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
