"""A door whose package is not installed says what to install, and no other door needs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from memfs.errors import ExtraMissing

SERVE = "from memfs.doors.cli.app import run; sys.exit(run(['-C', '.', 'mcp']))"


@pytest.mark.parametrize(
    ("package", "code", "extra"),
    [
        ("mcp", "import memfs.doors.mcp", "gitmemfs[mcp]"),
        ("agents", "import memfs.doors.openai_agents", "gitmemfs[openai-agents]"),
    ],
)
def test_what_to_install_is_named(package: str, code: str, extra: str) -> None:
    """Without the extra the door raises ExtraMissing with the command that helps (B5)."""
    script = f"import sys; sys.modules[{package!r}] = None\n{code}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("memfs.errors.ExtraMissing")
    assert f"pip install '{extra}'" in last


@pytest.mark.parametrize(
    ("modules", "code", "extra"),
    [
        (("agents", "agents.memory"), "import memfs.doors.openai_agents", "gitmemfs[openai-agents]"),
        (("mcp",), "import sys; sys.modules['mcp_types'] = None; import memfs.doors.mcp", "gitmemfs[mcp]"),
        (
            ("anthropic", "anthropic.lib", "anthropic.lib.tools"),
            "from memfs.doors.anthropic import MemfsMemoryTool",
            "gitmemfs[anthropic]",
        ),
    ],
)
def test_an_older_package_is_reported_like_a_missing_one(modules: tuple[str, ...], code: str, extra: str) -> None:
    """A package without what the door needs of it gets the same sentence, not a traceback's riddle (B5)."""
    made = "".join(f"sys.modules[{name!r}] = types.ModuleType({name!r})\n" for name in modules)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, types\n{made}{code}"], capture_output=True, text=True, check=False
    )
    assert done.stderr.strip().splitlines()[-1].startswith("memfs.errors.ExtraMissing")
    assert f"pip install '{extra}'" in done.stderr


def test_a_fault_of_memfs_itself_is_not_taken_for_a_missing_package() -> None:
    """What is wrong with memfs's own modules is reported as it is."""
    fault = ImportError("no such door", name="memfs.doors.no_such_door")
    assert ExtraMissing.of("a door", "door", ("sdk",), fault) is fault


def test_the_command_says_so_too(tmp_path_factory: pytest.TempPathFactory) -> None:
    """``memfs mcp`` without its extra ends with one sentence, and its help works (B5)."""
    folder = tmp_path_factory.mktemp("w")
    (folder / "memfs.toml").write_text("")
    script = f"import sys; sys.modules['mcp'] = None\n{SERVE}"
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install 'gitmemfs[mcp]'" in done.stderr
    assert "Traceback" not in done.stderr
    asked = subprocess.run(
        [sys.executable, "-c", script.replace("'mcp']))", "'mcp', '--help']))")], cwd=folder, check=False
    )
    assert asked.returncode == 0
