"""The agents: each does one task of an iteration, from what the context memory holds, and stores what it made.

None of them remembers anything between two tasks: a process may end after any of them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from parcels import WORDS, Cause, parcels, puzzling, score

from memfs import AgentOutput, ContextMemory, MetaReviewStorage

STRATEGIES = ("combine", "sharpen", "simplify")


@dataclass
class Board:
    """The hypotheses and matches so far, as the context memory gives them back."""

    hypotheses: dict[str, dict[str, Any]] = field(default_factory=dict)
    matches: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, memory: ContextMemory, iteration: int) -> Board:
        """What was stored up to an iteration."""
        found = memory.retrieve_state(
            "partial", iterations=list(range(1, iteration + 1)), components=["hypotheses", "tournament"]
        ).content
        matches = {one["id"]: dict(one) for one in found.tournament_results.get("results", ())}
        return cls({one["id"]: dict(one) for one in found.hypothesis_data}, matches)

    @property
    def champion(self) -> str:
        """The id of the hypothesis with the best rating, "" without any."""
        rated = [(one["rating"], name) for name, one in self.hypotheses.items() if one["state"] != "proposed"]
        return max(rated)[1] if rated else ""

    def causes(self, name: str) -> tuple[Cause, ...]:
        """What a hypothesis says makes parcels late."""
        return tuple(frozenset(cause) for cause in self.hypotheses[name]["causes"]) if name else ()


def written(causes: Iterable[Cause]) -> list[list[str]]:
    """Causes as a document holds them."""
    return sorted(sorted(cause) for cause in causes)


def words(causes: Iterable[Cause]) -> set[str]:
    """Every word in some causes."""
    return {word for cause in causes for word in cause}


def likeness(one: Iterable[Cause], other: Iterable[Cause]) -> float:
    """How much two hypotheses have in common, 0 to 1."""
    mine, theirs = words(one), words(other)
    return len(mine & theirs) / len(mine | theirs) if mine | theirs else 1.0


class Agent:
    """What all agents share."""

    name = ""

    def __init__(self, memory: ContextMemory) -> None:
        self.memory = memory

    def dice(self, iteration: int) -> random.Random:
        """Chance that falls the same way in every run, also in one that resumes."""
        return random.Random(f"{self.name}/{iteration}")  # noqa: S311  nothing is secret here

    def task(self, iteration: int) -> str:
        """The id of this agent's task in an iteration."""
        return f"{self.name.lower()}-{iteration:03d}"

    def store(self, iteration: int, output: Any, confidence: float, cost: float, **metadata: Any) -> None:
        """Hand the result of this iteration's task over."""
        results = {
            "primary_output": output,
            "metadata": metadata,
            "confidence_score": round(confidence, 4),
            "resource_consumed": cost,
        }
        self.memory.store_agent_output(AgentOutput(agent_type=self.name, task_id=self.task(iteration), results=results))


class Generation(Agent):
    """Proposes a new cause: what the feedback in its prompt points at, else anything."""

    name = "Generation"

    def run(self, iteration: int, board: Board) -> str:
        """Propose a hypothesis; returns its id."""
        prompt = f"Propose one reason why parcels are late.\n\n{self.memory.feedback_for(self.name).text}"
        hinted = [word for word in re.findall(r"\w+=\w+", prompt) if word in WORDS]
        cause = self._cause(hinted, self.dice(iteration))
        name = f"h{iteration:02d}-generated"
        values = {"id": name, "state": "proposed", "rating": 1000.0, "agent": self.name, "causes": written([cause])}
        self.memory.store_hypothesis(values)
        quality = score([cause])
        self.store(
            iteration, {"hypothesis": name}, quality, 4.0, strategy="follow feedback" if hinted else "explore",
            improvement=round(quality - score(board.causes(board.champion)), 4),
        )  # fmt: skip
        return name

    @staticmethod
    def _cause(hinted: Sequence[str], dice: random.Random) -> Cause:
        """Two words about different things, hinted ones first."""
        chosen: dict[str, str] = {}
        for word in [*hinted, *dice.sample(WORDS, len(WORDS))]:
            chosen.setdefault(word.partition("=")[0], word)
        return frozenset(list(chosen.values())[:2])


class Reflection(Agent):
    """Tests a hypothesis on a sample of parcels; now and then on all of them, which takes two sittings."""

    name = "Reflection"

    def run(self, iteration: int, board: Board, hypothesis: str) -> None:
        """Test a hypothesis."""
        if iteration % 5:
            self._review(iteration, board, hypothesis, self.dice(iteration).sample(range(len(parcels())), 200))
            return
        token = self.begin(iteration, hypothesis)
        self.finish(iteration, board, token)

    def begin(self, iteration: int, hypothesis: str) -> str:
        """Plan a test on all parcels, and put the task down; returns the token to go on with."""
        state = {"hypothesis": hypothesis, "to": len(parcels())}
        return self.memory.save_continuation(self.name, self.task(iteration), state)

    def finish(self, iteration: int, board: Board, token: str) -> None:
        """Take the task up where the token says, maybe in another process."""
        state = self.memory.resume(token)
        self._review(iteration, board, state["hypothesis"], range(state["to"]))

    def _review(self, iteration: int, board: Board, name: str, sample: Sequence[int]) -> None:
        quality = score(board.causes(name), [parcels()[number] for number in sample])
        board.hypotheses[name] |= {"state": "reviewed", "reviews": 1, "evidence": quality}
        self.memory.store_hypothesis(board.hypotheses[name])
        self.store(iteration, {"hypothesis": name, "evidence": quality}, 0.6 + 0.4 * quality, 2.0, sample=len(sample))


class Ranking(Agent):
    """Lets hypotheses meet; the better one wins rating from the other."""

    name = "Ranking"

    def plan(self, iteration: int, board: Board, newest: str) -> dict[str, Any]:
        """The task as it is handed out: who meets whom."""
        others = sorted(set(board.hypotheses) - {newest}, key=lambda name: -board.hypotheses[name]["rating"])
        others = others[: 2 - iteration % 2]
        matches = [[f"m{iteration:02d}-{turn}", newest, other] for turn, other in enumerate(others, 1)]
        return {"agent": self.name, "task_id": self.task(iteration), "iteration": iteration, "matches": matches}

    def run(self, task: Mapping[str, Any], board: Board, stop_before: str = "") -> list[str]:
        """Play the matches of a task that have no result yet; returns those that were played."""
        played = []
        for match, one, other in task["matches"]:
            if match in board.matches:
                continue
            if match == stop_before:
                raise SystemError("the power fails")
            self._play(match, one, other, board)
            played.append(match)
        rated = {name: board.hypotheses[name]["rating"] for _, *pair in task["matches"] for name in pair}
        self.store(task["iteration"], {"ratings": rated}, 0.9, 1.0, matches=len(task["matches"]))
        return played

    def _play(self, match: str, one: str, other: str, board: Board) -> None:
        better = score(board.causes(one)) >= score(board.causes(other))
        winner, loser = (one, other) if better else (other, one)
        pair = [board.hypotheses[winner], board.hypotheses[loser]]
        stake = round(32 / (1 + 10 ** ((pair[0]["rating"] - pair[1]["rating"]) / 400)), 1)
        ratings = {winner: round(pair[0]["rating"] + stake, 1), loser: round(pair[1]["rating"] - stake, 1)}
        result = {"id": match, "participants": [one, other], "winner": winner, "ratings": ratings}
        self.memory.store_tournament_result(result)
        board.matches[match] = result
        for name in (winner, loser):
            board.hypotheses[name] |= {"state": "ranked", "rating": ratings[name]}
            self.memory.store_hypothesis(board.hypotheses[name])


class Evolution(Agent):
    """Makes a better hypothesis of the best ones there are, by a strategy that the feedback may recommend."""

    name = "Evolution"

    def run(self, iteration: int, board: Board, newest: str) -> str:
        """Evolve the champion; returns the id of the child."""
        prompt = self.memory.feedback_for(self.name).text
        advised = [word for word in re.findall(r"\w+", prompt) if word in STRATEGIES]
        strategy = advised[0] if advised and iteration % 4 else STRATEGIES[iteration % 3]
        champion, dice = board.champion, self.dice(iteration)
        parents = sorted({champion, newest}) if strategy == "combine" else [champion]
        before, causes = board.causes(champion), self._evolved(strategy, board, parents, dice)
        gain, new = round(score(causes) - score(before), 4), round(1 - likeness(causes, before), 4)
        name = f"h{iteration:02d}-{strategy}"
        rating = round(board.hypotheses[champion]["rating"] + (16.0 if gain > 0 else -16.0), 1)
        values = {"id": name, "state": "evolved", "rating": rating, "agent": self.name, "causes": written(causes)}
        self.memory.store_hypothesis(values, parents=parents)
        self.store(
            iteration, {"hypothesis": name, "parents": parents}, 0.5 + gain, 6.0,
            strategy=strategy, improvement=gain, diversity=new,
        )  # fmt: skip
        return name

    @staticmethod
    def _evolved(strategy: str, board: Board, parents: Sequence[str], dice: random.Random) -> set[Cause]:
        causes = {cause for parent in parents for cause in board.causes(parent)}
        if strategy == "sharpen":
            old = dice.choice(sorted(causes, key=sorted))
            return causes - {old} | {old | {dice.choice(WORDS)}}
        if strategy == "simplify" and len(causes) > 1:
            return causes - {min(causes, key=lambda cause: score([cause]))}
        return causes


class Proximity(Agent):
    """Says which hypotheses are close to each other."""

    name = "Proximity"

    def run(self, iteration: int, board: Board) -> None:
        """Compare the newest hypotheses."""
        recent = sorted(board.hypotheses)[-6:]
        pairs = [[a, b] for a in recent for b in recent if a < b and likeness(board.causes(a), board.causes(b)) > 0.6]
        self.store(iteration, {"close": pairs}, 0.8, 0.5, compared=len(recent), diversity=round(1 - len(pairs) / 15, 4))


class MetaReviewer(Agent):
    """Looks at an iteration as a whole, and says what to do differently."""

    name = "Meta-review"

    def run(self, iteration: int, board: Board) -> dict[str, Any]:
        """Store the meta-review of an iteration; returns the feedback by agent."""
        best = board.causes(board.champion)
        missing = puzzling(best)[:2]
        evolved = [one for one in board.hypotheses.values() if one["agent"] == "Evolution" and one["rating"] > 1000]
        won = [one["id"].partition("-")[2] for one in evolved]
        advice = max(STRATEGIES, key=lambda one: (won.count(one), one == "combine"))
        feedback = {
            "Generation": [f"Look at parcels with {' and '.join(missing)}: the best hypothesis does not explain them"]
            if missing
            else ["What is left looks like chance: propose only what is well supported"],
            "Evolution": [f"Prefer to {advice}: it won most often"],
        }
        self.memory.store_meta_review(
            MetaReviewStorage(
                iteration_number=iteration,
                critique={
                    "common_patterns": [f"late with {word}" for word in sorted(words(best))],
                    "agent_feedback": feedback,
                    "iteration_improvements": [f"The best hypothesis explains {score(best):.0%} (F1)"],
                },
                research_overview={
                    "synthesis": f"Parcels are late with {'; or '.join(' and '.join(one) for one in written(best))}",
                    "research_areas": sorted({word.partition("=")[0] for word in words(best)}),
                    "next_priorities": [f"Explain late parcels with {word}" for word in missing],
                },
            )
        )
        return feedback
