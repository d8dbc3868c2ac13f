"""Residents of a workspace: the command as far as one answers it."""

from __future__ import annotations

NOBODY = 77
ASKING = f"""
import os, sys
sys.path.pop(0)
from memfs.doors.resident import client
code = client.answered(sys.argv[1:])
os._exit({NOBODY} if code is None else code)
"""
"""The command as far as a resident answers it: it ends with 77 where none does."""
