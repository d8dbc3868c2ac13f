"""A reviewer of one's own: it knows what makes a social memory worth keeping.

A reviewer is any object with a ``name`` and a method ``score_storage(item)``. ``memfs.toml`` names it in
``review.reviewers`` as ``social_reviewer:SocialReviewer``; the folder of this file has to be on ``PYTHONPATH``.
"""

from __future__ import annotations

from memfs import MemoryItem, Score

BASE = 5.0
NO_OPINION = 6.0
TELLS = {
    "who decides or is responsible": ("decides", "owns", "responsible", "maintains", "on call"),
    "how to reach or work with somebody": ("prefers", "ask ", "reach", "works from", "time zone", "introduced"),
    "who belongs together": ("team", "reports to", "pairs with", "colleague", "met "),
}


class SocialReviewer:
    """Scores social memories by what they tell of people; it has no opinion on others."""

    name = "social"

    def score_storage(self, item: MemoryItem) -> Score:
        """5 for a social memory, 2 more for whom it names and for each thing it tells, at most 10."""
        if item.type != "social":
            return Score(NO_OPINION, "not about people")
        text = item.content.lower()
        told = [what for what, words in TELLS.items() if any(word in text for word in words)]
        if item.data.get("person"):
            told.append(f"it is about {item.data['person']}")
        return Score(min(10.0, BASE + 2.0 * len(told)), "; ".join(told) or "it tells nothing of how people work")
