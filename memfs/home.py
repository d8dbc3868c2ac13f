"""Home: the folder of whoever runs this process.

Owns what is said where there is none. What lies in it is everybody else's business.
"""

from __future__ import annotations

from pathlib import Path

from memfs.errors import StorageIO


def home() -> Path:
    """This user's home folder.

    Raises:
        StorageIO: there is none: no ``HOME``, and the system does not know the user, as in some containers.
    """
    try:
        return Path.home()
    except RuntimeError:
        raise StorageIO("this user has no home folder", hint="set HOME to a folder of this user's") from None
