"""A fourth reviewer, as seed 003 adds one: it scores drafts by whether they concern security.

Run it: ``python examples/security_reviewer.py``.
"""

from __future__ import annotations

import tempfile

from memfs import MemoryItem, Score, open_workspace, register_reviewer

KEYWORDS = ("auth", "password", "token", "encryption", "vulnerability")
REVIEWERS = ("analyzer", "patterns", "knowledge-archaeologist", "security")


class SecurityReviewer:
    """5.0 for any draft, 3.0 more for one that holds one of the keywords."""

    name = "security"

    def score_storage(self, item: MemoryItem) -> Score:
        """What the draft has to do with security, 0 to 10."""
        found = [word for word in KEYWORDS if word in item.content.lower()]
        return Score(8.0 if found else 5.0, f"it speaks of {', '.join(found)}" if found else "no word of security")


def main() -> None:
    """Store a text with four reviewers, and show what each said."""
    register_reviewer("security", SecurityReviewer)
    with (
        tempfile.TemporaryDirectory() as folder,
        open_workspace(folder, create=True, watch=False, settings={"review.reviewers": list(REVIEWERS)}) as workspace,
    ):
        result = workspace.intake.store(MemoryItem("Rotated the signing token after the vulnerability report"))
        print(f"stored: {result.stored}, consensus {result.consensus_score:.1f}")
        if result.review is not None:
            for name, score in result.review.agent_scores.items():
                print(f"  {name}: {score:.1f} ({result.review.reasons[name]})")


if __name__ == "__main__":
    main()
