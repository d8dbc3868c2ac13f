"""Settings files on disk: whose they are, what they are made of, and what happens to them when something goes wrong."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from kit.faults import Fault, Stopped, injected
from memfs.doors.claude_code import installer
from memfs.doors.claude_code.installer import install, settings_of, uninstall
from memfs.doors.claude_code.settings_file import FileResult, InstallScope
from memfs.errors import ContentError, MemfsError, NotRegularFile, PathEscape, StorageReadOnly
from memfs.fs import atomic_replace, io

SETTINGS = b'{\n  "permissions": {\n    "allow": [\n      "Bash(make test)"\n    ]\n  }\n}\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a repository and settings of a team's."""
    (tmp_path / "P/.git").mkdir(parents=True)
    (tmp_path / "P/.claude").mkdir()
    (tmp_path / "P/.claude/settings.json").write_bytes(SETTINGS)
    return tmp_path / "P"


def tree(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder: files with their bytes, folders without."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


# -- which file -----------------------------------------------------------------------------------------------------
def test_each_scope_has_its_file(project: Path, own_world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C6: the project's, one's own in the project, and one's own everywhere, where CLAUDE_CONFIG_DIR says."""
    assert settings_of(InstallScope.PROJECT, project).path == project / ".claude/settings.json"
    assert settings_of(InstallScope.LOCAL, project).path == project / ".claude/settings.local.json"
    assert settings_of(InstallScope.USER, project).path == own_world / ".claude/settings.json"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "~/claude")
    assert settings_of(InstallScope.USER, project).path == own_world / "claude/settings.json"


def test_the_project_is_the_nearest_with_memory_or_repository(tmp_path: Path) -> None:
    """C6: a repository below a workspace is a project of its own; a folder in neither is one, too."""
    (tmp_path / "home/ContextMemory").mkdir(parents=True)
    (tmp_path / "home/code/.git").mkdir(parents=True)
    (tmp_path / "home/code/src").mkdir()
    (tmp_path / "home/letters").mkdir()
    assert installer.project_folder(tmp_path / "home/code/src") == tmp_path / "home/code"
    assert installer.project_folder(tmp_path / "home/letters") == tmp_path / "home"


def test_a_team_calls_memfs_by_name_and_a_person_by_path(project: Path) -> None:
    """C6: what is shared names no folder of one machine; what is one's own works whatever the PATH."""
    assert installer.program(InstallScope.PROJECT) == ("memfs",)
    own, *_ = installer.program(InstallScope.USER)
    assert os.path.isabs(own)
    assert os.access(own, os.X_OK)


def test_without_its_script_memfs_is_called_by_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C6: and then no module of the folder that it is called in gets in between (-P)."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin/python"))
    assert installer.program(InstallScope.LOCAL) == (str(tmp_path / "bin/python"), "-P", "-m", "memfs")


# -- in and out -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("data", [SETTINGS, b"\xef\xbb\xbf" + SETTINGS, SETTINGS.replace(b"\n", b"\r\n")])
@pytest.mark.parametrize("scope", list(InstallScope))
def test_every_byte_and_mode_is_as_it_was(project: Path, own_world: Path, scope: InstallScope, data: bytes) -> None:
    """C6: BOM, line ends, last line and rights stay; the second install and uninstall find nothing to do."""
    file = settings_of(scope, project).path
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(data)
    file.chmod(0o640)
    assert install(scope, project).done is FileResult.CHANGED
    assert file.read_bytes() != data
    assert install(scope, project).done is FileResult.SAME
    assert uninstall(scope, project).done is FileResult.CHANGED
    assert uninstall(scope, project).done is FileResult.SAME
    assert file.read_bytes() == data
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


@pytest.mark.parametrize("scope", list(InstallScope))
def test_nothing_is_left_where_nothing_was(tmp_path: Path, own_world: Path, scope: InstallScope) -> None:
    """C6: files and folders that install made go with uninstall."""
    (tmp_path / "P").mkdir()
    before = tree(tmp_path / "P"), tree(own_world)
    assert install(scope, tmp_path / "P").done is FileResult.CREATED
    uninstall(scope, tmp_path / "P")
    assert (tree(tmp_path / "P"), tree(own_world)) == before


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("unit", ["\t", "  ", "    "])
def test_the_manner_of_the_file_is_kept(project: Path, unit: str, newline: str, end: str) -> None:
    """C6: what is put in is indented and ended as the lines around it, and half characters stay escapes."""
    file = project / ".claude/settings.json"
    text = f'{{\n{unit}"a": "\\ud800",\n{unit}"hooks": {{\n{unit}{unit}"Notification": []\n{unit}}}\n}}{end}'
    data = text.replace("\n", newline).encode()
    file.write_bytes(data)
    install(InstallScope.PROJECT, project)
    after = file.read_bytes().decode()
    assert f'{newline}{unit}{unit}"SessionStart": [{newline}{unit}{unit}{unit}{{{newline}' in after
    assert "\n" not in after.replace(newline, "")
    uninstall(InstallScope.PROJECT, project)
    assert file.read_bytes() == data


def test_the_folder_of_somebody_elses_files_stays(project: Path) -> None:
    """C6: a folder with other files in it does not go."""
    (project / ".claude/settings.json").unlink()
    (project / ".claude/agents").mkdir()
    before = tree(project)
    install(InstallScope.PROJECT, project)
    uninstall(InstallScope.PROJECT, project)
    assert tree(project) == before


def test_a_dry_run_writes_nothing(tmp_path: Path, project: Path) -> None:
    """C6: neither file nor folder, and it says what would be."""
    before = tree(project)
    assert install(InstallScope.PROJECT, project, dry=True).done is FileResult.CHANGED
    assert install(InstallScope.LOCAL, tmp_path, dry=True).done is FileResult.CREATED
    assert not (tmp_path / ".claude").exists()
    assert tree(project) == before


# -- files of other sorts -------------------------------------------------------------------------------------------
def test_a_link_of_the_user_is_followed(tmp_path: Path, own_world: Path) -> None:
    """C6: settings that are a link into somebody's dotfiles stay one; what it leads to is written."""
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles/claude.json").write_bytes(SETTINGS)
    (own_world / ".claude").mkdir()
    link = own_world / ".claude/settings.json"
    link.symlink_to(tmp_path / "dotfiles/claude.json")
    install(InstallScope.USER, tmp_path)
    assert link.is_symlink()
    assert b'"hooks"' in (tmp_path / "dotfiles/claude.json").read_bytes()
    uninstall(InstallScope.USER, tmp_path)
    assert link.read_bytes() == SETTINGS


def test_a_link_out_of_a_project_is_refused(tmp_path: Path, project: Path, own_world: Path) -> None:
    """C6, faults 13: a repository cannot have the settings of its reader changed, by a file or folder of its own."""
    (own_world / ".claude").mkdir()
    (own_world / ".claude/settings.json").write_bytes(SETTINGS)
    (project / ".claude/settings.local.json").symlink_to(own_world / ".claude/settings.json")
    with pytest.raises(PathEscape):
        install(InstallScope.LOCAL, project)
    (tmp_path / "Q").mkdir()
    (tmp_path / "Q/.claude").symlink_to(own_world / ".claude")
    with pytest.raises(PathEscape):
        install(InstallScope.PROJECT, tmp_path / "Q")
    assert (own_world / ".claude/settings.json").read_bytes() == SETTINGS


def test_a_write_protected_file_is_left_alone(project: Path) -> None:
    """C6: a file without the right to write is asked about first; a dry run shows what to add."""
    (project / ".claude/settings.json").chmod(0o444)
    before = tree(project)
    with pytest.raises(StorageReadOnly) as refused:
        install(InstallScope.PROJECT, project)
    assert refused.value.path == str(project / ".claude/settings.json")
    assert tree(project) == before
    assert install(InstallScope.PROJECT, project, dry=True).done is FileResult.CHANGED


@pytest.mark.parametrize(
    "data", [b'{"a": "\xff"}', b"\xff\xfe{\x00}\x00", b"{'a': 1}", b"not json", b"[1]", b'{"a": 1, "a": 2}', b"// mine"]
)
def test_what_cannot_be_read_is_refused_with_its_line(project: Path, data: bytes) -> None:
    """C6: with path, line and remedy, and every file as it was."""
    (project / ".claude/settings.json").write_bytes(data)
    before = tree(project)
    for act in (install, uninstall):
        with pytest.raises(ContentError) as refused:
            act(InstallScope.PROJECT, project)
        assert refused.value.path == str(project / ".claude/settings.json")
        assert refused.value.line == 1
        assert refused.value.hint
    assert tree(project) == before


def test_folders_and_pipes_in_the_way_are_refused(project: Path) -> None:
    """C6: nothing waits for a pipe, nothing is put in a folder's place."""
    (project / ".claude/settings.local.json").mkdir()
    with pytest.raises(NotRegularFile):
        install(InstallScope.LOCAL, project)
    (project / ".claude/settings.json").unlink()
    os.mkfifo(project / ".claude/settings.json")
    with pytest.raises(NotRegularFile):
        install(InstallScope.PROJECT, project)
    (project / ".claude/settings.json").unlink()
    (project / ".claude/settings.local.json").rmdir()
    (project / ".claude").rmdir()
    (project / ".claude").write_text("a file")
    with pytest.raises(MemfsError):
        install(InstallScope.PROJECT, project)
    assert (project / ".claude").read_text() == "a file"


# -- what goes wrong ------------------------------------------------------------------------------------------------
def test_what_somebody_saves_meanwhile_is_kept(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C6: a save between the look and the write is neither lost nor left without hooks."""
    file = project / ".claude/settings.json"
    saved = SETTINGS.replace(b"make test", b"make lint")
    put = atomic_replace.put
    calls = []

    def save_first(*given: object) -> None:
        if not calls:
            file.write_bytes(saved)
        calls.append(given)
        put(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(atomic_replace, "put", save_first)
    install(InstallScope.PROJECT, project)
    monkeypatch.setattr(atomic_replace, "put", put)
    assert len(calls) == 2
    assert "make lint" in file.read_text()
    uninstall(InstallScope.PROJECT, project)
    assert file.read_bytes() == saved


def test_stopped_at_any_operation_each_file_is_whole(project: Path) -> None:
    """C6: killed anywhere, each file is as it was or as it was to be; the next install or uninstall does the rest."""
    assert _stops(project, lambda: install(InstallScope.PROJECT, project)) > 10


def test_stopped_while_taking_out_each_file_is_whole(tmp_path: Path) -> None:
    """C6: so it is on the way out, where files and a folder go."""
    (tmp_path / "P").mkdir()
    install(InstallScope.PROJECT, tmp_path / "P")
    assert _stops(tmp_path / "P", lambda: uninstall(InstallScope.PROJECT, tmp_path / "P")) > 5


def _stops(project: Path, act: Callable[[], object]) -> int:
    files = [project / ".claude/settings.json"]
    before = {file: file.read_bytes() for file in files}
    act()
    after = {file: file.read_bytes() if file.exists() else None for file in files}
    at = 0
    while True:
        at += 1
        for file, data in before.items():
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(data)
        with injected(Fault(at)) as fault, suppress(Stopped):
            act()
        assert all((file.read_bytes() if file.exists() else None) in (before[file], after[file]) for file in files)
        act()
        assert {file: file.read_bytes() if file.exists() else None for file in files} == after
        if not fault.stopped:
            return at


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_disk_that_refuses_changes_nothing(tmp_path: Path, error: int) -> None:
    """C6: the error names the file, nothing of ours is left lying about, and the next install finds its way."""
    with injected(Fault()) as counted:
        wanted = install(InstallScope.PROJECT, _folder(tmp_path / "wanted")).after
    refused = 0
    for at in range(1, len(counted.seen) + 1):
        project = _folder(tmp_path / str(at))
        try:
            with injected(Fault(at, error)):
                install(InstallScope.PROJECT, project)
        except MemfsError as refusal:
            refused += bool(refusal.path)
        found = tree(project)
        assert set(found) <= {".claude", ".claude/settings.json"}, at
        assert found.get(".claude/settings.json") in (None, wanted), at
        install(InstallScope.PROJECT, project)
        assert tree(project) == {".claude": None, ".claude/settings.json": wanted}
    assert refused > len(counted.seen) // 2


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_two_at_once_put_it_in_once(tmp_path: Path) -> None:
    """C6: two processes that install at the same time leave one set of hooks, and a file that can be read."""
    (tmp_path / "P/.git").mkdir(parents=True)
    (tmp_path / "P/.claude").mkdir()
    file = tmp_path / "P/.claude/settings.json"
    file.write_bytes(SETTINGS)
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                install(InstallScope.PROJECT, tmp_path / "P")
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    assert len(json.loads(file.read_bytes())["hooks"]["Stop"]) == 1
    uninstall(InstallScope.PROJECT, tmp_path / "P")
    assert file.read_bytes() == SETTINGS
    assert io.read_file(file) == SETTINGS
    assert [path.name for path in file.parent.iterdir()] == ["settings.json"]
