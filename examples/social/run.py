"""A type of memory and a reviewer, both added by configuration alone.

Run it anywhere: ``python examples/social/run.py``.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

from memfs import MemoryCoordinator, open_workspace

HERE = Path(__file__).resolve().parent


def configure(root: Path) -> None:
    """Make a workspace, and lay the file of its types into it as a person would."""
    open_workspace(root, create=True, watch=False).close()
    (root / "ContextMemory/configuration").mkdir(exist_ok=True)
    shutil.copyfile(HERE / "kinds.yaml", root / "ContextMemory/configuration/kinds.yaml")


def reviewers() -> list[str]:
    """Whom ``memfs.toml`` names. Where it lies in the workspace, and that is trusted, nobody has to pass them on."""
    with (HERE / "memfs.toml").open("rb") as file:
        return list(tomllib.load(file)["review"]["reviewers"])


def main(root: Path) -> None:
    """Store and retrieve social memories."""
    configure(root)
    with (
        open_workspace(root, watch=False, settings={"review.reviewers": reviewers()}) as workspace,
        MemoryCoordinator(workspace=workspace) as memory,
    ):
        result = memory.store(
            "Ines decides about releases and prefers small pull requests; ask Tomasz while she is away", "social"
        )
        assert result.stored, result.reason
        assert result.review is not None
        for name, score in result.review.agent_scores.items():
            print(f"{name:<24}{score:4.1f}  {result.review.reasons[name]}")
        (found,) = memory.retrieve("who decides about a release?", memory_types=["social"])
        print(f"{found.type}: {found.content} (people: {', '.join(found.metadata['people'])})")
        print(dict(memory.stats().by_type))


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))  # as PYTHONPATH would
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder) / "workspace")
