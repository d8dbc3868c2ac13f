"""The home folder of this user, and the base folders below it.

Only absolute paths count; without a home folder the error says which variable to set.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from memfs.errors import StorageIO


def home() -> Path:
    """This user's home folder: what ``HOME`` names, or what the system knows where that is not an absolute path.

    Raises:
        StorageIO: there is none: no ``HOME``, and the system does not know the user, as in some containers.
    """
    try:
        found = Path.home()
        if not found.is_absolute():
            import pwd  # few processes have such a HOME

            found = Path(pwd.getpwuid(os.getuid()).pw_dir)
    except (RuntimeError, KeyError):
        raise StorageIO("this user has no home folder", hint="set HOME to a folder of this user's") from None
    return found


def base_folder(variable: str, below_home: str, on_macs: str = "") -> Path:
    """What a variable of the XDG base directory specification names; without one, a folder below home.

    A relative path is ignored, as the specification says: it would be another folder wherever one works.

    Args:
        below_home: the folder that the specification gives where the variable is not set.
        on_macs: the folder on macOS, "" for the same one.

    Raises:
        StorageIO: it is needed, and there is no home.
    """
    named = os.environ.get(variable, "")
    if os.path.isabs(named):
        return Path(named)
    return home() / (on_macs if on_macs and sys.platform == "darwin" else below_home)
