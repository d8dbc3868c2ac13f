"""FeedbackMemory: tells an agent what the last meta-review says to it (seeds 001 and 004; S5).

Owns when it is asked and that each version is recorded as given once. What the feedback says, and the record, are
``memfs.states.feedback``' business.
"""

from __future__ import annotations

from typing import Any, ClassVar

from memfs.model.episode import StateSnapshot
from memfs.sources.plugin import Delivery, Entry, Selection
from memfs.sources.storesource import StoreSource


class FeedbackMemory(StoreSource):
    """Gives an agent that is named its feedback, ready for the prompt.

    Args:
        store: anything with ``for_agent(agent, most=...)``, at once or awaited, whose answer has a ``text``, or is None
            where there are no iterations. Such as ``memfs.states.feedback.Feedback``. Where it has ``note_given(agent,
            most=...)``, that is called once the agent has it.

    Attributes:
        enabled: whether it says anything.
        max_items: so many points at most.
        any_trust: the review that it quotes is written by agents; it is asked for by the agent's name, not by what may
            be always loaded.
        fenced: its text is quoted data between marks already, and is handed on as it is.
    """

    name: ClassVar[str] = "feedback"
    layer: ClassVar[str] = Delivery.AUTOMATIC.value
    any_trust: ClassVar[bool] = True
    fenced: ClassVar[bool] = True

    enabled: bool
    max_items: int

    async def get_context(self, state: StateSnapshot) -> str | None:
        """The feedback as text, and recorded as given; "" without any."""
        text = await super().get_context(state)
        if text:
            self.given(state)
        return text

    def given(self, state: StateSnapshot) -> None:
        """Record that the agent has it; who only looks, or has no room for it, gives nothing (S5)."""
        note = getattr(self.store, "note_given", None)
        if note is not None:
            note(state.agent, most=self.max_items)

    def _ask(self, state: StateSnapshot) -> Any:
        if not self.enabled or not self.max_items or not state.agent.strip():
            return None
        return self.store.for_agent(state.agent, most=self.max_items)

    def _selection(self, found: Any) -> Selection:
        if found is None or not found.text.strip():
            return Selection()
        number = getattr(found, "from_iteration", None)
        origin = "" if number is None else f"meta-review of iteration {number}"
        return Selection(entries=(Entry(text=found.text.strip(), trust="agent", origin=origin),))

    def _text(self, selection: Selection) -> str | None:
        return "\n".join(entry.text for entry in selection.entries)
