"""Build the store of one workspace from its folder and settings: repository, index, lock, quota and file watch.

A workspace of a newer memfs is refused. While a workspace may be created at a place, no other process
creates one there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType

from memfs import private, trust
from memfs.catalog.facts import Catalog, ItemCatalog
from memfs.config import first_policies, load, load_kinds, make_root
from memfs.config_names import RETENTION_POLICY, SETTINGS_FILE, SYSTEM_CONFIG
from memfs.dataclass import NamedTuple, replace
from memfs.errors import MemfsError, Problem, RepoUnsupported, SettingInvalid
from memfs.format import toml_text
from memfs.format.codec import Codec
from memfs.format.toml_text import FORMAT
from memfs.fs import workspace_location
from memfs.fs.journal import Journal
from memfs.fs.lock import FileLock, folder_held
from memfs.fs.tree import Tree, View
from memfs.fs.workspace_location import find_workspace
from memfs.git.layout import read_config
from memfs.git.repository import Repository
from memfs.model.ids import in_mount
from memfs.model.kinds import BUILT_IN, MemoryType
from memfs.model.state_paths import AGGREGATES, CHECKPOINTS, ITERATIONS
from memfs.search.generations import index_folder, shared_folder
from memfs.search.search_index import SearchIndex
from memfs.settings import Settings
from memfs.startup import TYPE_CHECKING, Any
from memfs.store import Store
from memfs.store.access_log import FOLDER as SERVED_FOLDER
from memfs.store.access_log import ServedLog
from memfs.store.parts import Parts, StorePolicy
from memfs.usage import FILE as USAGE_FILE
from memfs.usage import Usage

if TYPE_CHECKING:
    from memfs.admin.layout import CreateResult
    from memfs.store.failover import Secondary


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


def repository_at(root: Path, create: bool, allow_detached: bool, own: bool) -> tuple[Repository, bool]:
    """The repository that holds the workspace, and whether it was made now.

    Raises:
        RepoUnsupported, RepoUntrusted: see ``Repository.find``.
    """
    found = Repository.find(root, allow_detached=allow_detached, trusted=trust.repository)
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
        return Parts(
            tree=tree,
            journal=journal,
            lock=FileLock(state / "lock", root=repository.common_dir, often=True),
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
            secondary=find_secondary(tree, repository, journal, settings.storage.secondary),
        )
    except BaseException:
        tree.close()
        repository.close()
        raise


def usage_of(parts: Parts, store: Store, settings: Settings, notes: Path) -> Usage:
    """Where uses are counted and it is noted who was given what: in the folder ``notes``. In a repository nothing of
    private memory is written down: its ids begin as a person's words do.
    """
    repository, chosen = parts.repository, settings.served
    unnamed = in_mount(private.NAME, "") if notes == repository.state else ""
    served = ServedLog(
        notes / SERVED_FOLDER,
        on=chosen.log,
        questions=chosen.questions,
        reasons=settings.recall.learn,
        days=chosen.days,
        megabytes=chosen.megabytes,
        head=lambda: repository.head().commit or "",
        versions=store.index_sync.blobs_of,
        unnamed=unnamed,
    )
    return Usage(notes / USAGE_FILE, served, unnamed)


def lay_out(store: Store, repository: Repository, repository_made: bool) -> CreateResult:
    """Write the first files of a workspace (``memfs.admin.layout``)."""
    from memfs.admin import layout

    return layout.lay_out(store, repository, repository_made)


def has_driver(repository: Repository) -> bool:
    """Whether git finds a driver of that name, in the repository's configuration or the person's."""
    if read_config(repository.common_dir / "config").get(DRIVER_SETTING):
        return True
    return any(value for _, value in repository.git.settings(rf"^{DRIVER_SETTING.replace('.', '[.]')}$"))


def problems(repository: Repository) -> Iterator[Problem]:
    """What is to be reported of the repository: links that something replaced, and what keeps commits unsigned."""
    yield from _replaced_links(repository)
    if repository.sign == "off":  # most sign nothing, and are spared what does
        return
    try:
        yield from repository.signing.problems()
    except MemfsError as error:
        yield Problem.of(error)


def _replaced_links(repository: Repository) -> Iterator[Problem]:
    """The working trees of code in which something else is where the link to the memory's own branch belongs."""
    common = repository.common_dir
    if workspace_location.place_in(common) != repository.work_tree:
        return
    for place in workspace_location.replaced(common):
        message = "something else is where the link to the memory belongs: the memory is not read from it"
        hint = "move what you need of it away, and remove it; the next command makes the link again"
        yield Problem.warning(str(place), "LinkReplaced", message, hint)


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
        document = json.loads(read_whole(tree, SYSTEM_CONFIG) or b"")
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


def find_secondary(tree: Tree, repository: Repository, journal: Journal, setting: str) -> Secondary | None:
    """The secondary location, None where none is configured.

    Args:
        setting: the value of ``storage.secondary``, "" for none.

    Raises:
        SettingInvalid: the setting names a place that will not do.
    """
    if not setting:
        return None
    from memfs.store.failover import Secondary  # most have none, and are spared it

    inside = (repository.work_tree, repository.workspace, repository.git_dir, repository.common_dir)
    return Secondary(usable(setting, inside, _SECONDARY), tree.root, journal)


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
            raise SettingInvalid(f"{named!r} lies inside {inside}", field=field, hint=hint)
    return real
