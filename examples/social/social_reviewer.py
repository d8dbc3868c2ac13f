"""A reviewer of one's own: it reads social memories, knows which are worth keeping, and which answer a question.

A reviewer is any object with a ``name`` and one or more of ``extract(item)``, ``score_storage(item)`` and
``score_relevance(item, query)``. ``memfs.toml`` names it in
``review.reviewers`` as ``social_reviewer:SocialReviewer``; the folder of this file has to be on ``PYTHONPATH``.
"""

from __future__ import annotations

import re

from memfs import MemoryItem, Score

BASE = 5.0
NO_OPINION = 6.0
TELLS = {
    "who decides or is responsible": ("decides", "owns", "responsible", "maintains", "on call"),
    "how to reach or work with somebody": ("prefers", "ask ", "reach", "works from", "time zone", "introduced"),
    "who belongs together": ("team", "reports to", "pairs with", "colleague", "met "),
}


NAME = re.compile(r"\b[A-Z][a-z]+\b(?=,? (?:decides|owns|prefers|maintains|works|is|while)\b)|(?<=\bask )[A-Z][a-z]+\b")


class SocialReviewer:
    """Reads and scores social memories by what they tell of people; it has no opinion on others."""

    name = "social"

    def extract(self, item: MemoryItem) -> MemoryItem:
        """A social memory with the people that it names in ``metadata.people``."""
        people = sorted(set(NAME.findall(item.content))) if item.type == "social" else []
        return item.replace(metadata={**item.metadata, "people": people}) if people else item

    def score_relevance(self, item: MemoryItem, query: str) -> Score:
        """1 for a memory about somebody whom the question names, or about anybody where it asks "who"."""
        people = [str(name) for name in item.metadata.get("people", ())]
        asked = query.casefold().split()
        named = [name for name in people if name.casefold() in asked]
        if named or ("who" in asked and people):
            return Score(1.0, f"about {', '.join(named or people)}")
        return Score(0.0, "about nobody that was asked for")

    def score_storage(self, item: MemoryItem) -> Score:
        """5 for a social memory, 2 more for whom it names and for each thing it tells, at most 10."""
        if item.type != "social":
            return Score(NO_OPINION, "not about people")
        text = item.content.lower()
        told = [what for what, words in TELLS.items() if any(word in text for word in words)]
        if item.data.get("person"):
            told.append(f"it is about {item.data['person']}")
        return Score(min(10.0, BASE + 2.0 * len(told)), "; ".join(told) or "it tells nothing of how people work")
