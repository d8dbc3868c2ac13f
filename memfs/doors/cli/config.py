"""``config``: show the settings and where each value comes from, and change them in a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memfs import trust
from memfs.config import changed, own_file
from memfs.config_names import SETTINGS_FILE
from memfs.dataclass import dataclass, field
from memfs.doors.cli.command import Unclear, invocation, opened, remark, verb
from memfs.doors.cli.declare import click
from memfs.doors.cli.options import refuse_overruled, write_setting
from memfs.doors.cli.output import MERGE, OMIT, Table, Text, count, note
from memfs.errors import MemfsError
from memfs.settings import SPECS, from_text, spec_of, toml

if TYPE_CHECKING:
    from memfs.workspace import Workspace


@dataclass(frozen=True, slots=True)
class SettingValue:
    """A setting.

    Attributes:
        value: what holds.
        origin: where that is said: ``default``, a file with the line, a variable or ``argument``.
    """

    value: Any
    origin: str


@dataclass(frozen=True, slots=True)
class NamedSetting:
    """The setting that was asked for, or changed.

    Attributes:
        key: its name.
        value: what holds.
        origin: where that is said.
        variable: the environment variable that sets it, too.
    """

    key: str
    value: Any
    origin: str
    variable: str | None


@dataclass(frozen=True, slots=True)
class Configuration:
    """Settings.

    Attributes:
        settings: all of them by name.
        setting: the one that was named; its fields are inlined.
        file: the file in which it was changed.
    """

    settings: Mapping[str, SettingValue] = field(default_factory=dict, metadata=OMIT)
    setting: NamedSetting | None = field(default=None, metadata=MERGE)
    file: str = field(default="", metadata=OMIT)


def _text(found: Configuration, all_: bool) -> Text:
    if (one := found.setting) is not None:
        shown = one.value if isinstance(one.value, str) else toml(one.value)
        yield f"{one.key} = {toml(one.value)}  ({one.origin})" if found.file else shown
        return
    rows = {key: row for key, row in found.settings.items() if all_ or row.origin != "default"}
    yield Table([(key, toml(row.value), row.origin) for key, row in rows.items()])


@verb("config", text=_text)
@click.argument("key", required=False, metavar="[KEY]")
@click.argument("value", required=False, metavar="[VALUE]")
@click.option("--list", "all_", is_flag=True, help="Show all settings, also those that have their default.")
@click.option("--user", is_flag=True, help="Change your own settings, for all your workspaces.")
@click.option("--unset", is_flag=True, help="Take the setting out of the file.")
def config(key: str | None, value: str | None, all_: bool, user: bool, unset: bool) -> Configuration:
    """Show settings, and where each value comes from; with a VALUE, or --unset, change one.

    memfs.toml of the workspace is changed, or with --user your own ~/.config/memfs/config.toml; comments and all other
    lines stay. Precedence: --set, environment variable, memfs.toml, your own file. Lists are written with commas: memfs
    config memory.triggered episodic,semantic

    Examples:
        memfs config --list
        memfs config index.engine
        memfs config index.engine sqlite
        memfs config --user recall.limit 20
        memfs config --unset index.engine
    """
    if unset and (key is None or value is not None):
        raise Unclear("--unset takes the name of one setting", "memfs config --unset KEY")
    if user and not (unset or value is not None):
        raise Unclear("--user changes your own file", "memfs config --user KEY VALUE")
    if key is None:
        with opened() as workspace:
            settings, root = workspace.settings, workspace.root
        note_ignored(root)
        rows = {name: SettingValue(settings.get(name), origin) for name, origin in settings.origins.items()}
        usual = sum(row.origin == "default" for row in rows.values())
        if usual and not (all_ or invocation().json):
            remark(f"{usual} settings have their default; 'memfs config --list' shows all")
        return Configuration(rows)
    if unset or value is not None:
        written = None if value is None else from_text(value, spec_of(key))
        return _change_own(key, written) if user else _change(key, written)
    with opened() as workspace:
        found, root = _named(workspace, key), workspace.root
    note_ignored(root)
    return Configuration(setting=found)


def _named(workspace: Workspace, key: str) -> NamedSetting:
    """A setting that holds.

    Raises:
        SettingInvalid: there is none of that name.
        MemfsError: it is not set.
    """
    settings = workspace.settings
    if key not in settings.origins:
        spec_of(key)
        raise MemfsError(f"{key} is not set", hint=f"memfs config {key} VALUE sets it")
    return _own(key, settings.get(key), settings.origins[key])


def _change(key: str, value: Any) -> Configuration:
    """Change ``memfs.toml``.

    Raises:
        SettingInvalid: it was changed, but something goes before it.
    """
    asked, given = invocation(), invocation().settings
    if (key, value) == ("history.commit", "manual"):  # it counts for this very change, too: nothing is committed
        asked.settings = {key: value, **given}
    with opened() as workspace:
        asked.settings = given
        write_setting(workspace, key, value, f"Set {key}" if value is not None else f"Unset {key}")
    with opened() as workspace:  # again: settings are read when it is opened
        note_ignored(workspace.root)
        origin = workspace.settings.origins.get(key, "default")
        if value is not None:
            refuse_overruled(key, origin)
        found = _named(workspace, key) if key in workspace.settings.origins else _own(key, value, origin)
    return Configuration(setting=found, file=SETTINGS_FILE)


def _change_own(key: str, value: Any) -> Configuration:
    """Change the person's own file, for which no workspace is needed."""
    from memfs.fs import io

    path = own_file()
    io.make_private_folder(path.parent)
    io.write_file(path, changed(path.parent, key, value, path.name))
    return Configuration(setting=_own(key, value, "default" if value is None else str(path)), file=str(path))


def _own(key: str, value: Any, origin: str) -> NamedSetting:
    variable = SPECS[key].variable if key in SPECS else None
    return NamedSetting(key, spec_of(key).default if value is None else value, origin, variable)


def note_ignored(root: Path) -> None:
    """Say on standard error which settings do not count, and what would change that."""
    status = trust.status_of(root)
    if status.wants and not status.trusted:
        are = "is" if len(status.wants) == 1 else "are"
        note(f"{count(len(status.wants), 'setting')} {are} ignored: {status.reason}")
        note(f"  look, then: {trust.command(status.root)}")
