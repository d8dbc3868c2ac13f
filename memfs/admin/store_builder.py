"""Build the store of one workspace from its folder and settings: repository, index, lock, quota and file watch; create
the files a new one begins with, install the merge driver, and bring older files to the present format.

A workspace of a newer memfs is refused. While a workspace may be created at a place, no other process creates one
there, and only missing files are written. Also exports the schemas that editors complete and check by.

Version 1 of the format named itself in ``configuration/system_config.json`` and kept the schemas for editors in
``ContextMemory/.schemas/``; version 2 names itself in ``memfs.toml`` and keeps no copies of what memfs brings along.
A migration is one batch: a killed one leaves the old version.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType

from memfs import private, resources
from memfs.catalog.facts import Catalog, ItemCatalog
from memfs.config import first_policies, first_toml, load, load_kinds, make_root
from memfs.config_names import RETENTION_POLICY, SETTINGS_FILE, SYSTEM_CONFIG
from memfs.dataclass import NamedTuple, dataclass, replace
from memfs.errors import MemfsError, NotRegularFile, Problem, RepoUnsupported, SettingInvalid
from memfs.format import toml_text
from memfs.format.codec import Codec, parse
from memfs.format.toml_text import FORMAT, FORMAT_VERSION
from memfs.fs import io, workspace_location
from memfs.fs.journal import Journal
from memfs.fs.lock import FileLock, folder_held
from memfs.fs.tree import Tree, View
from memfs.fs.workspace_location import find_workspace
from memfs.git.layout import Trusted, read_config
from memfs.git.repository import Repository
from memfs.model.ids import in_mount
from memfs.model.kinds import BUILT_IN, MemoryType
from memfs.model.state_paths import AGGREGATES, CHECKPOINTS, ITERATIONS
from memfs.search.generations import index_folder, shared_folder
from memfs.search.search_index import SearchIndex
from memfs.settings import Settings
from memfs.startup import TYPE_CHECKING, Any, json
from memfs.store import Store
from memfs.store.parts import CONTENT, Parts, StorePolicy

if TYPE_CHECKING:
    from memfs.format.schema import Schemas
    from memfs.store.failover import Secondary
    from memfs.usage import Usage


_MAKING = 10.0
_LIMIT = 16 << 20
DRIVER = "memfs"
DRIVER_SETTING = f"merge.{DRIVER}.driver"


class Foundation(NamedTuple):
    """What a workspace is built on.

    Attributes:
        create: what is missing of it may be made.
        repository_made: the repository was made now; the first policies follow from it.
    """

    root: Path
    settings: Settings
    repository: Repository
    create: bool
    repository_made: bool


@contextmanager
def foundation(
    path: str | os.PathLike[str] | None, create: bool, settings: Mapping[str, Any] | None, own_repository: bool
) -> Iterator[Foundation]:
    """What a workspace is opened on in the block; while it may be made there, no other process makes one.

    Raises:
        WorkspaceNotFound, RepoUnsupported, RepoUntrusted, SettingInvalid.
    """
    root = make_root(Path(path or ".")) if create else find_workspace(path)
    # What is half made would pass for a person's.
    with folder_held(root, _MAKING) if create else nullcontext():
        fresh = create and not (root / SETTINGS_FILE).exists()
        chosen = load(root, settings)
        repository, made = repository_at(root, create, chosen.history.allow_detached, own_repository)
        if fresh:
            chosen = load(root, {**first_policies(made), **(settings or {})})
        yield Foundation(root, with_private(chosen, root), repository, create, made)


def with_private(settings: Settings, root: Path) -> Settings:
    """Settings with this user's private memory of the project among the mounts, where there is one and no setting says
    otherwise; it may be made at any time, and counts from the next opening on.
    """
    if private.NAME in settings.mounts or private.holds(root):
        return settings
    with suppress(MemfsError, OSError):  # 'memfs status --private' reports what is wrong with it
        folder = private.find(private.project_at(root))
        if folder is not None:
            mounts = MappingProxyType({**settings.mounts, private.NAME: str(folder)})
            return replace(settings, mounts=mounts, origins={**settings.origins, f"mounts.{private.NAME}": "default"})
    return settings


def _trusted(work_tree: Path) -> Trusted:
    from memfs.trust import repository  # asked only of a repository that is somebody else's

    return repository(work_tree)


def repository_at(root: Path, create: bool, allow_detached: bool, own: bool) -> tuple[Repository, bool]:
    """The repository that holds the workspace, and whether it was made now.

    Raises:
        RepoUnsupported, RepoUntrusted: see ``Repository.find``.
    """
    found = Repository.find(root, allow_detached=allow_detached, trusted=_trusted)
    if found is not None and not (create and own and found.work_tree != root):
        return found, create and own and _is_begun(found)
    if not create:
        from shlex import quote  # only this error needs it

        raise RepoUnsupported(
            "this workspace is in no git repository", path=str(root), hint=f"to make one: memfs init {quote(str(root))}"
        )
    return Repository.create(root), True


def _is_begun(repository: Repository) -> bool:
    """Whether a repository may be one of our own, whose creation was interrupted: it holds nothing of value."""
    from memfs.git.commits import unfinished

    staged = os.path.lexists(repository.git_dir / "index") and not unfinished(repository)
    if staged or repository.head().commit is not None:
        return False
    return not repository.git.run("for-each-ref", "--count=1")


def has_states(view: View) -> bool:
    """Whether a multi-agent system keeps its state in a workspace: most have none, and are spared its machinery.

    Where all iterations are archived, aggregates and checkpoints show it.
    """
    return any(next(view.scan(folder), None) is not None for folder in (ITERATIONS, CHECKPOINTS, AGGREGATES))


def limits_age(parts: Parts) -> bool:
    """Whether a retention time may be configured: most workspaces have none, and are spared what obeys it."""
    own = any(kind.retention_days for kind in parts.kinds if kind not in BUILT_IN)
    return own or parts.seen.entry(RETENTION_POLICY) is not None


def arrange_watching(store: Store, parts: Parts, settings: Settings, watch: bool | None) -> None:
    """Watch the files, where that is wanted: at once, or from the first question on where it was not said."""
    if watch is False or not settings.watch.enabled:
        return
    from memfs.watch import Watcher, notes_folder  # a process that answers once does not need it

    quiet = parts.policy.rest if parts.policy.adopts else None
    notes = notes_folder(parts.repository.state)
    eyes = partial(Watcher, store, parts.tree.root, settings.watch, quiet_seconds=quiet, notes=notes)
    store.watch_with(eyes, watch is True)


def parts_of(root: Path, repository: Repository, settings: Settings, clock: Callable[[], datetime]) -> Parts:
    """The machinery of a workspace, as its settings say.

    Raises:
        FormatUnsupported, SettingInvalid, StorageIO.
    """
    tree = Tree(root)
    try:
        check_format(tree)
        kinds, schemas = load_kinds(tree)
        state = repository.state
        repository.sign = settings.history.sign
        journal = Journal(state / "journal")
        codec = Codec(schemas, kinds, settings.security.allow_invisible)
        secondary = None
        if settings.storage.secondary:
            from memfs.store.failover import Secondary  # most have none, and are spared it

            inside = (repository.work_tree, repository.workspace, repository.git_dir, repository.common_dir)
            secondary = Secondary(usable(settings.storage.secondary, inside, _SECONDARY), tree.root, journal)
        return Parts(
            tree=tree,
            journal=journal,
            lock=FileLock(state / "lock", root=repository.common_dir, keep_open=True),
            commit_lock=FileLock(state.parent / "commit.lock", root=repository.common_dir),
            repository=repository,
            codec=codec,
            items=ItemCatalog(Catalog(shared_folder(repository.common_dir), settings.index.texts), codec),
            kinds=kinds,
            index=SearchIndex(index_folder(root, record=state.parent), settings.index.engine),
            policy=StorePolicy(
                commit=settings.history.commit,
                interval=settings.history.interval_seconds,
                adopt=settings.history.adopt,
                rest=settings.history.adopt_after_seconds,
                local=frozenset() if settings.working.in_git else frozenset({MemoryType.WORKING.value}),
            ),
            clock=clock,
            secondary=secondary,
        )
    except BaseException:
        tree.close()
        repository.close()
        raise


def usage_of(parts: Parts, settings: Settings, notes: Path) -> Usage:
    """Where uses are counted and it is noted who was given what: in the folder ``notes``. In a repository nothing of
    private memory is written down: its ids begin as a person's words do.
    """
    from memfs.store.access_log import FOLDER as SERVED_FOLDER
    from memfs.store.access_log import ServedLog
    from memfs.usage import FILE, Usage

    chosen = settings.served
    unnamed = in_mount(private.NAME, "") if notes == parts.repository.state else ""
    served = ServedLog(
        notes / SERVED_FOLDER,
        on=chosen.log,
        questions=chosen.questions,
        reasons=settings.recall.learn,
        days=chosen.days,
        megabytes=chosen.megabytes,
        unnamed=unnamed,
    )
    return Usage(notes / FILE, served, unnamed)


def has_driver(repository: Repository) -> bool:
    """Whether git finds a driver of that name, in the repository's configuration or the person's."""
    if read_config(repository.common_dir / "config").get(DRIVER_SETTING):
        return True
    return any(value for _, value in repository.git.settings(rf"^{DRIVER_SETTING.replace('.', '[.]')}$"))


def problems(repository: Repository) -> Iterator[Problem]:
    """What is to be reported of the repository: links that something replaced, and what keeps commits unsigned."""
    common = repository.common_dir
    separate = workspace_location.place_in(common) == repository.work_tree
    # the working trees of code in which something else is where the link to the memory's own branch belongs
    for place in workspace_location.replaced(common) if separate else ():
        message = "something else is where the link to the memory belongs: the memory is not read from it"
        hint = "move what you need of it away, and remove it; the next command makes the link again"
        yield Problem.warning(str(place), "LinkReplaced", message, hint)
    if repository.sign == "off":  # most sign nothing, and are spared what does
        return
    try:
        yield from repository.signing.problems()
    except MemfsError as error:
        yield Problem.of(error)


# -- the version of the format ----------------------------------------------------------------------------------------
def check_format(tree: View) -> None:
    """Refuse a workspace written by a newer memfs.

    Raises:
        FormatUnsupported: naming both versions. A missing or unreadable file counts as the present version;
            ``memfs check`` reports it.
    """
    toml_text.require_known_format(version_in_settings(tree))
    toml_text.require_known_format(version_in_old_place(tree), SYSTEM_CONFIG)


def version_in_settings(tree: View) -> int | None:
    """The version that ``memfs.toml`` names."""
    try:
        text = settings_text(tree)
        return toml_text.format_version(toml_text.parse(text), text)
    except SettingInvalid:
        return None


def settings_text(tree: View) -> str:
    """What ``memfs.toml`` says."""
    try:
        return (read_whole(tree, SETTINGS_FILE) or b"").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingInvalid("not UTF-8 text", path=SETTINGS_FILE, hint="save it as UTF-8") from error


def version_in_old_place(tree: View) -> int | None:
    """The version that a workspace of format 1 names, in ``configuration/system_config.json``."""
    try:
        document = json.loads(read_whole(tree, SYSTEM_CONFIG) or b"{}")
    except (ValueError, RecursionError):
        return None
    version = document.get(FORMAT) if isinstance(document, dict) else None
    return version if isinstance(version, int) and not isinstance(version, bool) else None


def read_whole(tree: View, path: str) -> bytes | None:
    """A file's bytes; None where there is none."""
    try:
        return tree.read(path, _LIMIT).data
    except FileNotFoundError:
        return None


_SECONDARY = "storage.secondary"


def secondary_problems(tree: Tree, secondary: Secondary | None) -> list[Problem]:
    """A warning where the secondary location fills and fails with the workspace's own disk."""
    if secondary is None:
        return []
    existing = next(folder for folder in (secondary.place, *secondary.place.parents) if os.path.exists(folder))
    if os.stat(existing).st_dev != os.stat(tree.root).st_dev:
        return []
    message = "the secondary location is on the workspace's own disk and fills and fails with it"
    hint = f"set {_SECONDARY} to a folder on another disk"
    return [Problem.warning(str(secondary.place), "SameDisk", message, hint)]


def usable(named: str, apart_from: Iterable[Path], field: str) -> Path:
    """A folder, if it may serve for what must not be lost with a workspace.

    Raises:
        SettingInvalid: it is not absolute, or is in one of the folders.
    """
    hint = "name an absolute folder elsewhere"
    place = Path(named).expanduser()
    if not place.is_absolute() or "\0" in named:
        raise SettingInvalid(f"{named!r} is not an absolute path", field=field, hint=hint)
    real = Path(os.path.realpath(place))
    for inside in apart_from:
        if real.is_relative_to(os.path.realpath(inside)):
            raise SettingInvalid(f"{named!r} is inside {inside}", field=field, hint=hint)
    return real


# -- first files and the merge driver ----------------------------------------------------------------------------------
EDITOR_FOLDER = f"{CONTENT}/.schemas"
_IGNORED = b"""# Files memfs is in the middle of writing, and large bodies kept beside their documents.
.memfs-*.tmp
*.zst
"""
_ALL_IGNORED = "# Copies of what memfs brings along, for editors: 'memfs admin schema' writes them again.\n*\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateResult:
    """What making a workspace did.

    Attributes:
        files: paths written.
        repository_made: whether a repository was made, too.
        policies: the settings that were chosen, by dotted key.
        commit: the first commit, None while it waits; ``reason`` says why.
        driver: whether the merge driver was installed.
    """

    files: tuple[str, ...]
    repository_made: bool
    policies: Mapping[str, str]
    commit: str | None
    reason: str = ""
    driver: bool = False


def first_files(chosen: Mapping[str, str]) -> dict[str, bytes]:
    """The content of each file a new workspace begins with, by path."""
    return {
        SETTINGS_FILE: first_toml(chosen).encode(),
        f"{CONTENT}/.gitattributes": resources.template_text("gitattributes").encode(),
        f"{CONTENT}/.gitignore": _IGNORED,
    }


def missing(root: Path, chosen: Mapping[str, str]) -> list[str]:
    """Those of a new workspace's files that are not there yet."""
    return [path for path in first_files(chosen) if not (root / path).exists()]


def lay_out(store: Store, repository: Repository, repository_made: bool) -> CreateResult:
    """Write what is missing of a workspace's first files, and install the merge driver.

    Where the repository was made for it, exactly those files become its first commit; in one that was there before,
    nothing is committed. A file that is there already stays as it is. Where nothing is missing, nothing is installed
    either: the workspace is merely opened.
    """
    chosen = first_policies(repository_made)
    plans = [plan for plan in store.plan_restore(first_files(chosen)) if plan.before is None]
    driver = bool(plans or repository_made) and _install(store, repository)  # first: once files are here, no one would
    store.carry_out(plans, "Begin a memory workspace", source="init")
    flushed = store.flush(adopt=False) if plans and repository_made else None
    return CreateResult(
        files=tuple(plan.path for plan in plans),
        repository_made=repository_made,
        policies=chosen,
        commit=flushed.commits[-1] if flushed and flushed.commits else None,
        reason=flushed.reason if flushed else "",
        driver=driver,
    )


def export_schemas(schemas: Schemas, folder: Path, *, ignored: bool = False) -> list[str]:
    """Write the schemas that editors complete and check by into a folder, replacing those that are there.

    Args:
        ignored: also have git ignore the folder: they are copies that anyone can make again.

    Returns:
        The names of the files written.

    Raises:
        StorageIO: one could not be written.
    """
    texts = schemas.editor_files() | ({".gitignore": _ALL_IGNORED} if ignored else {})
    io.make_folders(folder)
    for name, text in texts.items():
        io.write_file(folder / name, text.encode(), mode=0o644)
    return sorted(texts)


def _install(store: Store, repository: Repository) -> bool:
    """A configuration that cannot be written is no reason to be without a workspace."""
    try:
        return install_driver(repository)
    except MemfsError as error:
        store.note_failure(error)
        return False


SUFFIXES = ("yaml", "yml", "json")
_COMMAND = "memfs"
_NAME = "merges memory files field by field"
_SECTION = f"merge.{DRIVER}"
_ANSWERED = 2  # the driver answers 0 or 1; anything above comes of a program that is not there, or knows no such verb


def driver_command() -> str:
    """What git's shell runs: this very memfs; where that is gone, the one on ``PATH``; else git's own text merge.

    Without the last, a driver that is not there would leave our version in the file, and theirs nowhere.
    """
    from shlex import quote  # most commands install nothing

    words = "merge-driver %O %A %B --marker-size %L --path %P"
    script = os.path.join(os.path.dirname(sys.executable), _COMMAND)
    called = script if os.access(script, os.X_OK) and script.isprintable() else ""
    first = quote(called).replace("%", "%%") if called else _COMMAND
    text = "git merge-file -L ours -L base -L theirs --marker-size=%L %A %O %B"
    return f'm={first}; test -x "$m" || m={_COMMAND}; "$m" {words}; s=$?; test $s -lt {_ANSWERED} && exit $s; {text}'


def install_driver(repository: Repository) -> bool:
    """Name the driver in the repository's own configuration; False where that is so already.

    Raises:
        NotRegularFile: a link leads out of the repository.
        GitFailed: git cannot read the file, or another process writes it.
    """
    place, wanted = _place(repository), {f"{_SECTION}.name": _NAME, DRIVER_SETTING: driver_command()}
    known = read_config(place)
    missing = {name: value for name, value in wanted.items() if known.get(name) != value}
    for name, value in missing.items():
        repository.git.run("config", "--file", str(place), "--replace-all", name, value)
    return bool(missing)


def uninstall_driver(repository: Repository) -> bool:
    """Take the driver out of the configuration; False where it was not there. Raises what ``install_driver`` raises."""
    place = _place(repository)
    if not any(name.startswith(f"{_SECTION}.") for name in read_config(place)):
        return False
    repository.git.run("config", "--file", str(place), "--remove-section", _SECTION)
    return True


def setting_lines() -> tuple[str, ...]:
    """What ``install_driver`` writes, as git's configuration names it."""
    return f"{_SECTION}.name = {_NAME}", f"{DRIVER_SETTING} = {driver_command()}"


def is_driver_named(common_dir: Path) -> bool:
    """Whether the repository's own configuration names just this driver."""
    return read_config(common_dir / "config").get(DRIVER_SETTING) == driver_command()


def driver_problems(repository: Repository) -> Iterator[Problem]:
    """A warning where git would join memory files as plain text."""
    if not has_driver(repository):
        message = "git merges memory files as plain text here: the merge driver is not installed"
        hint = "'memfs init' installs it"
        yield Problem.warning("", "MergeDriverMissing", message, hint)


def ignore_problems(repository: Repository) -> Iterator[Problem]:
    """A warning where a rule of a person's keeps git from taking memory files; it names the rule."""
    name = f"{CONTENT}/memories/semantic/memory.yaml"  # is not there: what git has already, no rule keeps from it
    tree = {"GIT_WORK_TREE": str(repository.work_tree), "GIT_LITERAL_PATHSPECS": "0"}
    path = os.fsencode(repository.work_tree) + b"/" + repository.full(name)
    output = repository.git.run("check-ignore", "-v", "-z", "--stdin", data=path, variables=tree, accept=(0, 1))
    file, line, rule, *_ = [*os.fsdecode(output).split("\0"), "", "", ""]
    if rule and not rule.startswith("!"):
        message = f"git ignores memory files by {file}:{line} {rule}: 'git add' and 'git status' pass them over"
        hint = "remove that rule, or exempt this folder from it; until then only memfs commits them"
        yield Problem.warning(CONTENT, "MemoryIgnored", message, hint)


def attribute_lines() -> str:
    """The lines of ``.gitattributes`` that ask for the driver."""
    return "".join(f"*.{suffix} merge={DRIVER}\n" for suffix in SUFFIXES)


def asks_for_driver(attributes: bytes) -> bool:
    """Whether attributes say anything of how files are merged; a person may have chosen something else."""
    words = (
        word for line in attributes.splitlines() if not line.lstrip().startswith(b"#") for word in line.split()[1:]
    )
    return any(word.lstrip(b"-!").partition(b"=")[0] == b"merge" for word in words)


def _place(repository: Repository) -> Path:
    """The configuration that all working trees share."""
    place = Path(os.path.realpath(repository.common_dir / "config"))
    if place.parent != Path(os.path.realpath(repository.common_dir)):
        raise NotRegularFile("git's configuration is a link to elsewhere", path=str(place), hint="replace it by a file")
    return place


# -- migration --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationResult:
    """What bringing a workspace to the present version did.

    Attributes:
        before: the version that it said it was in; None where it said none.
        after: the version that it is in now.
        changed: whether that was written, or would be.
        paths: the files that were written or removed, or would be.
    """

    before: int | None
    after: int
    changed: bool
    paths: tuple[str, ...] = ()


def format_problems(tree: View) -> Iterator[Problem]:
    """A warning where the files say that they are of an older version, which is read and written all the same."""
    version = version_in_settings(tree)
    if version is None:
        version = version_in_old_place(tree)
    if version is not None and version < FORMAT_VERSION:
        message = f"the workspace is of format {version}; this memfs writes {FORMAT_VERSION}"
        hint = "'memfs admin migrate' brings it there"
        yield Problem.warning(SETTINGS_FILE, "FormatOld", message, hint)


def migrate(store: Store, parts: Parts, dry_run: bool = False) -> MigrationResult:
    """Bring a workspace to the present version of the format, as one batch; whatever else its files say stays.

    Raises:
        ContentError, SettingInvalid: a file is invalid beyond its version; nothing was changed.
        StorageIO: nothing was changed.
    """
    written = version_in_settings(parts.seen)
    before = written if written is not None else version_in_old_place(parts.seen)
    if written == FORMAT_VERSION:
        return MigrationResult(before=before, after=FORMAT_VERSION, changed=False)
    text = settings_text(parts.seen)
    toml_text.parse(text)  # what is no TOML stays as it is
    wanted: dict[str, bytes | None] = {SETTINGS_FILE: toml_text.with_format_version(text).encode()}
    data = read_whole(parts.seen, SYSTEM_CONFIG)
    if data is not None:
        values = dict(parse(data, SYSTEM_CONFIG).mapping)
        if values.pop(FORMAT, None) is not None:
            wanted[SYSTEM_CONFIG] = None
            if values.keys() - {"$schema"}:
                wanted[SYSTEM_CONFIG] = parts.codec.write_document(values, SYSTEM_CONFIG, "system_config", data)
    copies = parts.tree.scan(EDITOR_FOLDER, hidden=True)
    wanted.update((entry.path, None) for entry in copies if entry.regular and parts.repository.head_blob(entry.path))
    plans = store.plan_restore(wanted)
    if not dry_run:
        store.carry_out(plans, f"Bring the format to version {FORMAT_VERSION}", source="migrate")
    paths = tuple(plan.path for plan in plans)
    return MigrationResult(before=before, after=FORMAT_VERSION, changed=True, paths=paths)
