"""``memfs agent correct --allow-secret``: what the hint of a refusal names, there is (P4)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from memfs import MemoryLayer, SecretDetected
from tests.cli.conftest import Memfs, git

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
CORRECTION = f"Always use the sample token {TOKEN} in tests."


def test_p4_a_refused_correction_is_kept_with_a_reason(memfs: Memfs, root: Path) -> None:
    """The refusal names the option, the option keeps the words, and item and commit say why (P4, faults row 19)."""
    refused = memfs("agent", "correct", CORRECTION)
    assert refused.code != 0
    assert "--allow-secret REASON" in refused.err
    assert TOKEN not in refused.err

    kept = memfs("agent", "correct", CORRECTION, "--allow-secret", "the sample of the public documentation", "--json")

    assert kept.code == 0, kept.err
    [one] = kept.json["preferences"]
    assert one["content"] == CORRECTION
    assert (
        memfs("show", one["id"], "--json").json["metadata"]["secret_allowed"]
        == "the sample of the public documentation"
    )
    assert "the sample of the public documentation" in git(root, "log", "--format=%B")
    assert memfs("agent", "correct", CORRECTION, "--allow-secret", " ").code == 2


def test_p4_the_layer_takes_a_reason_too(memfs: Memfs, root: Path) -> None:
    """``record_correction`` has the same way out as the command line, also when the words are said again (P4)."""
    with MemoryLayer(root) as layer:
        with pytest.raises(SecretDetected):
            asyncio.run(layer.record_correction(CORRECTION))
        for _ in range(2):
            [kept] = asyncio.run(layer.record_correction(CORRECTION, allow_secret="a sample"))
            assert (kept.content, kept.metadata["secret_allowed"]) == (CORRECTION, "a sample")
