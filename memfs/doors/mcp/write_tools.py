"""The answers of the tools that change the memory: store, update, delete, restore and feedback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memfs.admin.recover import RECOVERED
from memfs.doors.mcp.answer import ToolResult
from memfs.doors.mcp.read_tools import Given
from memfs.doors.mcp.session import Desk
from memfs.model import MemoryItem
from memfs.model.item import VOUCHED
from memfs.model.query import moment

if TYPE_CHECKING:
    from memfs.facades.agent_tools import Caller

WORKING = "working"
_FIELDS = {"content": "content", "title": "title", "type": "memory_type", "status": "status"}


def store(desk: Desk, caller: Caller, given: Given) -> ToolResult:
    """``memory_store``."""
    draft = MemoryItem(
        given["content"],
        given.get("type", "semantic"),
        title=given.get("title", ""),
        tags=given.get("tags", ()),
        expires=moment("expires", given.get("expires")),
        context=given.get("context", {}),
    )
    result = desk.memory.store(draft, caller)
    item_id = result.memory_id or ""
    if draft.type == WORKING and caller.session:
        desk.worked(caller.session)
    found = desk.memory.workspace.store.get(item_id)
    data: dict[str, Any] = {"id": item_id, "outcome": "merged" if result.merged_into else "stored"}
    data |= {"near": list(result.near), "contradicts": list(result.contradicts)}
    if found is not None:  # else somebody took it away at this very moment
        data |= {"type": found.type, "trust": found.trust, "sha256": found.sha256}
    return ToolResult("\n".join(_stored(data)), data)


def _stored(data: dict[str, Any]) -> list[str]:
    if data["outcome"] == "merged":
        lines = [f"Known already: {data['id']} says the same, and holds what was added. No second memory was made."]
    else:
        lines = [f"Stored as {data['id']}."]
    if near := [one for one in data["near"] if one != data["id"]]:
        lines.append(f"Nearly the same: {', '.join(near)}. Where one of them is outdated, change it or delete it.")
    if data["contradicts"]:
        lines.append(f"It contradicts {', '.join(data['contradicts'])}: tell the person, who decides which one holds.")
    if data.get("type") == "preference" and data["trust"] not in VOUCHED:
        lines.append("A search finds it; nobody is told it unasked before the person has reviewed it.")
    return lines


def update(desk: Desk, caller: Caller, given: Given) -> ToolResult:
    """``memory_update``."""
    changes: dict[str, Any] = {field: given[name] for name, field in _FIELDS.items() if name in given}
    changes |= {name: given[name] for name in ("tags", "context") if name in given}
    if "expires" in given:
        changes["expires"] = moment("expires", given["expires"] or None)
    before, after = desk.memory.update(given["id"], changes, caller, given.get("expected"))
    changed = [name for name, field in _FIELDS.items() if getattr(before, field) != getattr(after, field)]
    changed += [name for name in ("tags", "context", "expires") if getattr(before, name) != getattr(after, name)]
    lines = [f"Changed {', '.join(changed)} of {after.id}." if changed else f"{after.id} says so already."]
    if before.trust != after.trust:
        lines.append(f"Its trust is {after.trust} from here on, no longer {before.trust}, as no person saw the change.")
    if changed:
        lines.append(f"memory_restore {after.id} brings the version before back.")
    data = {"id": after.id, "changed": changed, "type": after.type, "trust": after.trust, "sha256": after.sha256}
    return ToolResult("\n".join(lines), data)


def delete(desk: Desk, caller: Caller, given: Given) -> ToolResult:
    """``memory_delete``."""
    gone = desk.past.delete(given["id"], given.get("reason", ""), caller, given.get("expected"))
    revision, uncommitted = gone.revision[:12], gone.revision == RECOVERED
    by_hand = f"memfs restore {gone.item.id} --from {revision}" if revision else ""
    by_hand = f"memfs restore {gone.item.id} --displaced" if uncommitted else by_hand
    kept = "no commit holds it, and it is kept aside for 30 days" if uncommitted else "its history stays"
    lines = [f"Deleted {gone.item.id} (trust {gone.item.trust}); {kept}."]
    back = f"memory_restore {gone.item.id} brings it back"
    lines.append(f"{back}, and so does '{by_hand}'." if by_hand else f"{back} once a commit holds it: {gone.waits}.")
    way_back = {"tool": "memory_restore", "arguments": {"id": gone.item.id}, "command": by_hand}
    return ToolResult("\n".join(lines), {"id": gone.item.id, "revision": revision, "restore": way_back})


def restore(desk: Desk, caller: Caller, given: Given) -> ToolResult:
    """``memory_restore``."""
    back = desk.past.restore(given["id"], given.get("revision", ""), caller)
    said = f"Restored {back.item.id} from {back.origin}." if back.changed else f"{back.item.id} says so already."
    data = {"id": back.item.id, "from": back.origin, "changed": back.changed, "sha256": back.item.sha256}
    return ToolResult(said, data)


def feedback(desk: Desk, caller: Caller, given: Given) -> ToolResult:
    """``memory_feedback``."""
    item = desk.memory.feedback(given["id"], given["helpful"], given.get("reason", ""), caller)
    said = "more" if given["helpful"] else "less"
    return ToolResult(
        f"{item.id} counts for {said}: importance {item.importance:g}.", {"id": item.id, "importance": item.importance}
    )
