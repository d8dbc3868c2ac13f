"""The table of rules: under which names a rule is found by a file."""

from __future__ import annotations

import pytest

from memfs.learning.triggers import TriggerTable
from memfs.model.episode import RULE, TriggerRow, fits


@pytest.mark.parametrize(
    ("glob", "file"),
    [
        ("src/auth.py", "/home/ada/shop/src/auth.py"),
        ("src/*.py", "src/a.py"),
        ("src/test_*.spec.ts", "src/test_a.spec.ts"),
        ("src/*", "src/Makefile"),
        ("src/**", "src/a/b.c"),
        ("db/migrations", "shop/db/migrations/1/up.sql"),
        ("db/m*s/", "db/migrations/up.sql"),
        ("*.d", "etc/conf.d/x"),
        ("pages/[id].tsx", "pages/[id].tsx"),
        ("src/[ab].py", "src/b.py"),
        ("src/[ab]?", "src/bx"),
    ],
)
def test_a_rule_is_found_by_each_file_that_it_means(glob: str, file: str) -> None:
    """Whatever a rule's glob fits brings the rule among those that may apply (P4)."""
    table = TriggerTable(frozenset)
    table.put(TriggerRow(id="r", path="r.yaml", blob="", sort=RULE, files=(glob,)))
    assert fits(glob, file, anywhere=True)
    assert [row.id for row in table.applying([file], ())] == ["r"]
