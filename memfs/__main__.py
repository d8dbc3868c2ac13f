"""``python -m memfs`` and the console script: hands over to the command line."""

from __future__ import annotations

import gc
import sys

from memfs.adapters.cli.app import run


def main() -> None:
    """Run the command line and end the process with its exit code."""
    code = run()
    gc.freeze()  # an ending process needs no last look for garbage: that took a tenth of its time
    sys.exit(code)


if __name__ == "__main__":
    main()
