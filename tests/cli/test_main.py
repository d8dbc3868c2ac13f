"""The console script ends with the command's exit code, and without a last look for garbage."""

from __future__ import annotations

import gc

import pytest

from memfs import __main__ as script


def test_the_process_ends_with_the_exit_code_and_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking through what thousands of items left behind would take a tenth of a hook's time (design 14)."""
    monkeypatch.setattr(script, "run", lambda: 3)
    try:
        with pytest.raises(SystemExit) as ended:
            script.main()
        assert ended.value.code == 3
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
