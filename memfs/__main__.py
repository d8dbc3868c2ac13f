"""``python -m memfs`` and the console script: hands over to the command line."""

from __future__ import annotations

import sys

from memfs.adapters.cli.app import run


def main() -> None:
    """Run the command line and end the process with its exit code."""
    sys.exit(run())


if __name__ == "__main__":
    main()
