"""Layout: the text of a joined file, with the comments and the order of both versions as far as they can be kept (K4).

Owns the choice between a text that was joined by lines and one version's text with the other's values put into it.
Must not know which values are right: it is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memfs.errors import ContentError
from memfs.files import yamltext
from memfs.files.merge.comments import Comment, comments, with_comments
from memfs.files.merge.forms import Form
from memfs.files.merge.lines import merge_lines
from memfs.files.plain import same
from memfs.files.rendering import Parsed

_MOST_COMMENTS = 1_000
_FEW = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of a file that could be read."""

    data: bytes
    parsed: Parsed

    @property
    def mapping(self) -> dict[str, Any]:
        """Its values."""
        return self.parsed.mapping


def laid_out(form: Form, wanted: Mapping[str, Any], base: bytes, ours: Version, theirs: Version) -> bytes:
    """The bytes of a joined file.

    A text joined by lines that says just what is wanted is taken as it is. Else what differs is put into our text, and
    comments that are lost by it, or that theirs alone has, come back above their fields.

    Raises:
        ContentError: nothing could be written that reads back as wanted.
    """
    joined = merge_lines(base, ours.data, theirs.data)
    if joined.clean and _says(form, joined.data, wanted):
        return joined.data
    data = form.write(wanted, ours.parsed).data
    if ours.parsed.is_json:
        return data
    return _with_comments(form, data, wanted, base, ours, theirs)


def _says(form: Form, data: bytes, wanted: Mapping[str, Any]) -> bool:
    try:
        return same(form.read(data).mapping, wanted)
    except ContentError:
        return False


def _with_comments(
    form: Form, data: bytes, wanted: Mapping[str, Any], base: bytes, ours: Version, theirs: Version
) -> bytes:
    """The file with the comments that both would have, one after another as far as it still says the same."""
    present = _comments_of(form, data)
    lost = _lost(_comments_of(form, base), _read(ours.parsed), _read(theirs.parsed), present)
    if not lost:
        return data
    whole = _commented(form, data, wanted, lost)
    if whole is not None or len(lost) > _FEW:
        return whole or data
    for comment in lost:
        data = _commented(form, data, wanted, [comment]) or data
    return data


def _commented(form: Form, data: bytes, wanted: Mapping[str, Any], lost: Sequence[Comment]) -> bytes | None:
    """The file with comments put back, None where it would not say the same."""
    written = form.read(data).text
    text = written.encode(with_comments(written.text, yamltext.tree(written.text), lost))
    return text if _says(form, text, wanted) else None


def _lost(
    before: Sequence[Comment], ours: Sequence[Comment], theirs: Sequence[Comment], present: Sequence[Comment]
) -> list[Comment]:
    """What a side added, or neither removed, and is not there: by its text, since fields move below a heading."""
    there, new_or_shared = set(present), (set(ours) & set(theirs)) | ((set(ours) | set(theirs)) - set(before))
    one, other = ([each for each in side if each in new_or_shared] for side in (ours, theirs))
    texts = Counter(each.text for each in one) | Counter(each.text for each in other)
    missing = texts - Counter(each.text for each in present)
    found = []
    for each in dict.fromkeys([*one, *other]):
        if each not in there and missing[each.text] > 0:
            missing[each.text] -= 1
            found.append(each)
    return found[:_MOST_COMMENTS]


def _comments_of(form: Form, data: bytes) -> list[Comment]:
    try:
        return _read(form.read(data)) if data else []
    except ContentError:
        return []


def _read(parsed: Parsed) -> list[Comment]:
    text = parsed.text.text
    return comments(text, yamltext.tree(text)) if "#" in text else []
