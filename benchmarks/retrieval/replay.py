"""``python -m benchmarks.retrieval.replay FOLDER``: what ranking gains where it learns from use.

Half of a memory's questions are asked, and the evidence among the ten hits of each is opened, as an agent does who uses
it. Then the other half is asked, with what that taught and without. Each half is asked once in each of several splits.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
from collections.abc import Collection, Iterator, Sequence
from math import sqrt
from pathlib import Path
from statistics import fmean, pstdev

from benchmarks.retrieval.contenders import Memfs
from benchmarks.retrieval.measures import DEPTH, measure
from benchmarks.retrieval.sets import Asked, Memory, read_set
from benchmarks.surroundings import hermetic
from memfs import Query
from memfs.store.access_log import FOLDER, served_to

_SPLITS = 2
_HOSTILE = 1_000
Gain = tuple[float, ...]


class Learning(Memfs):
    """A workspace whose ranking learns."""

    def __init__(self, memory: Memory, folder: Path, embedder: str) -> None:
        super().__init__(memory.entries, folder, {"index.engine": "memory", "recall.learn": True}, embedder)
        self._names = {entry: name for name, entry in self._ids.items()}
        self._record = self._workspace.repository.state / FOLDER / "log.jsonl"
        self._pressed = b""
        self._own = memory.entries[len(memory.entries) // 2]

    def asked(self, asked: Asked, strategy: str = "") -> list[str]:
        """The answer; ``default`` is the one without what was learned."""
        hits = self._workspace.recaller.search(Query(text=asked.text, limit=DEPTH, strategy=strategy)).hits
        return [self._ids[hit.item.id] for hit in hits]

    def measured(self, asked: Asked, strategy: str = "") -> Gain:
        """Recall and nDCG of an answer, and whether the item of the one agent is in it."""
        answer = self.asked(asked, strategy)
        found = measure(answer, asked)
        return found.recall_10, found.ndcg_10, float(self._own.id in answer)

    def open(self, entries: Collection[str]) -> None:
        """Open some of the hits of the last answer."""
        workspace = self._workspace
        for entry in entries:
            workspace.usage.served.note("read", [self._names[entry]], workspace.parts.clock())

    def press(self, memory: Memory, rng: random.Random) -> None:
        """One agent asks a thousand questions with words of one item, and opens it each time."""
        own, words = self._own, [entry.text.split() for entry in memory.entries]
        with served_to("mcp", agent="mallory"):
            for _ in range(_HOSTILE):
                words_asked = rng.choices(own.text.split(), k=3) + rng.choices(rng.choice(words) or ["and"], k=1)
                question = Asked(id="", text=" ".join(words_asked), relevant=frozenset())
                self.open([entry for entry in self.asked(question) if entry == own.id])
        self._pressed = self._record.read_bytes()

    def forget(self) -> None:
        """Let it be as if nothing had been asked, but by the one agent."""
        shutil.rmtree(self._record.parent, ignore_errors=True)
        if self._pressed:
            self._record.parent.mkdir(mode=0o700)
            self._record.write_bytes(self._pressed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line a set: the measures without learning, and what learning adds to them."""
    chosen = _options().parse_args(arguments)
    names = ("recall_10", "ndcg_10", "its item")[: 3 if chosen.hostile else 2]
    print(f"{'':14}{'asked':>7}" + "".join(f"{name:>11}{'learned':>18}" for name in names))
    with hermetic() as folder:
        for path in sorted(chosen.folder.iterdir()):
            if (path / "queries.jsonl").exists() and (not chosen.sets or path.name in chosen.sets):
                found = [row for memory in read_set(path) for row in _replayed(memory, folder / "store", chosen)]
                cells = "".join(_cells(found, place) for place in range(len(names)))
                print(f"{path.name:14}{len(found):>7}{cells}", flush=True)
    return 0


def _replayed(memory: Memory, folder: Path, chosen: argparse.Namespace) -> Iterator[tuple[Gain, Gain]]:
    """For each question of a memory its measures without learning, and with it, the mean of all splits."""
    contender = Learning(memory, folder, chosen.embedder)
    plain = {asked.id: contender.measured(asked, "default") for asked in memory.questions}
    if chosen.hostile:
        contender.press(memory, random.Random(memory.name))
    found: dict[str, list[Gain]] = {asked.id: [] for asked in memory.questions}
    for split in range(_SPLITS):
        rng = random.Random(f"{memory.name} {split}")
        questions = rng.sample(memory.questions, len(memory.questions))
        halves = questions[::2], questions[1::2]
        for before, after in (halves, halves[::-1]):
            contender.forget()
            for asked in before:
                contender.open(_used(contender.asked(asked), asked, rng, chosen.wrong))
            for asked in after:
                found[asked.id].append(contender.measured(asked))
    contender.close()
    shutil.rmtree(folder, ignore_errors=True)
    for name, gains in found.items():
        yield plain[name], tuple(map(fmean, zip(*gains, strict=True)))


def _used(answer: Sequence[str], asked: Asked, rng: random.Random, wrong: float) -> list[str]:
    """What is opened of an answer: the evidence, or by mistake something else."""
    if answer and rng.random() < wrong:
        return [rng.choice(answer)]
    return [entry for entry in answer if entry in asked.relevant]


def _cells(found: Sequence[tuple[Gain, Gain]], place: int) -> str:
    """A measure without learning, and what learning adds, with half the width of its 95 % interval."""
    gains = [learned[place] - plain[place] for plain, learned in found]
    half = 1.96 * pstdev(gains) / sqrt(len(gains))
    return f"{fmean(plain[place] for plain, _ in found):>11.3f}{fmean(gains):>+10.4f} ±{half:.4f}"


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval.replay", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder that holds the sets, one folder each")
    parser.add_argument("--sets", nargs="*", default=(), help="only these sets")
    parser.add_argument(
        "--wrong", type=float, default=0.0, help="the share of answers of which something wrong is opened"
    )
    parser.add_argument("--hostile", action="store_true", help="first one agent opens its own item a thousand times")
    parser.add_argument("--embedder", default="", metavar="MODEL", help="find by meaning as well")
    return parser


if __name__ == "__main__":
    sys.exit(main())
