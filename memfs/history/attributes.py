"""Whether git would change the bytes of memory files between the working tree and history.

Owns which attributes do that. A blob must equal its file, or every checksum and every comparison is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from memfs.errors import AttributeConflict
from memfs.history.repository import Repository

CHANGING = ("text", "eol", "filter", "ident", "working-tree-encoding")
_HARMLESS = ("unset", "unspecified")


def attribute_conflicts(repository: Repository, paths: Sequence[str]) -> list[AttributeConflict]:
    """One error for each attribute by which git would change the bytes of one of the paths; no filter runs."""
    names = [str(repository.work_tree / os.fsdecode(repository.full(path))) for path in paths]
    request = os.fsencode("".join(f"{name}\0" for name in names))
    tree = {"GIT_WORK_TREE": str(repository.work_tree)}
    out = repository.git.run("check-attr", "-z", "--stdin", *CHANGING, data=request, variables=tree) if names else b""
    fields = [os.fsdecode(field) for field in out.split(b"\0")[:-1]]
    shown = dict(zip(names, paths, strict=True))
    return [
        AttributeConflict(
            f"the git attribute {name} is {value}",
            path=shown[path],
            hint="set '-text -filter -ident -working-tree-encoding' for it in ContextMemory/.gitattributes",
        )
        for path, name, value in zip(fields[::3], fields[1::3], fields[2::3], strict=True)
        if value not in _HARMLESS
    ]
