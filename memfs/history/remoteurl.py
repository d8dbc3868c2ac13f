"""Remote addresses: what a remote of the repository is called, and which way of transport its address asks for.

Owns reading the address out of the repository's configuration without git, the rules by which the person's own
configuration rewrites it, and the refusal of addresses that run something. Contacts nobody.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memfs.errors import RemoteInvalid
from memfs.history.configfile import read_config
from memfs.history.git import GitCommands
from memfs.history.refs import HEADS
from memfs.history.repository import Repository

_NAME = re.compile(r"(?!.*(?:\.\.|//|\.lock(?:/|$)|/\.))[A-Za-z0-9_][A-Za-z0-9._/-]{0,100}(?<![./])")
_SCHEMES: Mapping[str, str] = {
    "file": "file",
    "git": "git",
    "http": "http",
    "https": "https",
    "ssh": "ssh",
    "git+ssh": "ssh",
    "ssh+git": "ssh",
}
_SCHEME = re.compile(r"([A-Za-z0-9+.-]+)://(.*)", re.DOTALL)
_HELPER = re.compile(r"[A-Za-z0-9+.-]*::")
_LOGIN = re.compile(r"(?<=://)[^/\n]*@")
_REWRITES = r"^url\..*\.(insteadof|pushinsteadof)$"
_LONGEST = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A remote, as the repository names it.

    Attributes:
        name: its name.
        fetch, push: its addresses.
        protocols: the ways of transport that these addresses ask for, after the person's own rewriting.
        local: whether it is a folder on this machine.
    """

    name: str
    fetch: str
    push: str
    protocols: frozenset[str]
    local: bool

    @property
    def shown(self) -> str:
        """The address as it may be printed: without a password or token in it."""
        return without_login(self.fetch)


def without_login(text: str) -> str:
    """A text without the names, passwords and tokens that addresses in it carry."""
    return _LOGIN.sub("", text)


def configured(repository: Repository) -> tuple[str, ...]:
    """The names of the repository's remotes."""
    keys = (key.rpartition(".") for key in read_config(repository.common_dir / "config"))
    return tuple(dict.fromkeys(name.removeprefix("remote.") for name, _, key in keys if _is_url(name, key)))


def upstream(repository: Repository, branch: str) -> tuple[str, str]:
    """The remote and the branch there that a branch follows, each "" where the repository does not say."""
    config = read_config(repository.common_dir / "config")
    merge = config.get(f"branch.{branch}.merge", "")
    return config.get(f"branch.{branch}.remote", ""), merge.removeprefix(HEADS)


def remote_of(repository: Repository, name: str) -> Remote:
    """A remote by its name.

    Raises:
        RemoteInvalid: there is none of that name, or its address is none that memfs goes to.
    """
    config = read_config(repository.common_dir / "config")
    fetch = config.get(f"remote.{name}.url", "")
    if not _NAME.fullmatch(name) or not fetch:
        known = configured(repository)
        hint = f"there is {', '.join(known)}" if known else "git remote add origin ADDRESS makes one"
        raise RemoteInvalid(f"there is no remote {ascii(name)[1:-1][:100]!r}", hint=hint)
    given = config.get(f"remote.{name}.pushurl", "")
    fetch, push = _placed(repository, fetch), _placed(repository, given or fetch)
    rules = GitCommands(None, repository.state).settings(_REWRITES)
    coming = _rewritten(fetch, rules, "insteadof")
    going = push if given else _rewritten(push, rules, "pushinsteadof")
    going = going if going != push else _rewritten(push, rules, "insteadof")
    protocols = frozenset(map(protocol_of, (coming, going)))
    return Remote(name=name, fetch=fetch, push=push, protocols=protocols, local=protocols == {"file"})


def protocol_of(address: str) -> str:
    """The way of transport that an address asks for.

    Raises:
        RemoteInvalid: it would run a program, or is no address.
    """
    if not address or len(address) > _LONGEST or not address.isprintable() or address.startswith("-"):
        raise RemoteInvalid("the remote's address is none", hint="git remote set-url gives it another one")
    scheme = _SCHEME.match(address)
    if scheme and not _HELPER.match(address):
        known = _SCHEMES.get(scheme[1].lower())
        if known is None or scheme[2].startswith("-"):
            raise _not_taken(scheme[1])
        return known
    if _HELPER.match(address):
        raise _not_taken(address.partition("::")[0] + "::")
    before, colon, _ = address.partition(":")
    if colon and "/" not in before:
        return "ssh"
    return "file"


def _not_taken(scheme: str) -> RemoteInvalid:
    return RemoteInvalid(
        f"memfs does not go to {ascii(scheme)[1:-1][:40]} addresses: they can run programs",
        hint="use https, ssh, or a path",
    )


def _placed(repository: Repository, address: str) -> str:
    """An address as it means the same from any folder: a relative path begins at the working tree."""
    if protocol_of(address) != "file" or "://" in address:
        return address
    return os.path.normpath(os.path.join(_base(repository), os.path.expanduser(address)))


def _base(repository: Repository) -> Path:
    """From where a relative address leads; a memory within the git folder goes by the working tree around that."""
    common = repository.common_dir
    return common.parent if repository.work_tree.is_relative_to(common) else repository.work_tree


def _rewritten(address: str, rules: Sequence[tuple[str, str]], key: str) -> str:
    """The address as the person's own configuration rewrites it: by the longest beginning that a rule names."""
    matching = [
        (value, name) for name, value in rules if name.endswith(f".{key}") and value and address.startswith(value)
    ]
    if not matching:
        return address
    beginning, name = max(matching, key=lambda rule: len(rule[0]))
    return name.removeprefix("url.").removesuffix(f".{key}") + address[len(beginning) :]


def _is_url(name: str, key: str) -> bool:
    return key == "url" and name.startswith("remote.")
