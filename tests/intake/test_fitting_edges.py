"""The floor at its edges: tags count, a long message is its matter, and the second best is not brought up."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memfs.model import MemoryItem, Query
from memfs.sessions.respond import Fit
from memfs.workspace import Workspace

WORDS = ("amber", "basalt", "cedar", "dahlia", "ember", "fjord", "garnet", "hazel", "indigo", "jasper", "kelp", "lilac")
FILLER = [f"Shelf {number} holds part {number} of the {word} archive." for number, word in enumerate(WORDS)]
OTHERS = (
    "quokka wombat ibex lynx marmot ocelot puma stoat tapir vole weasel yak zebu gecko heron "
    "otter badger civet dingo ermine ferret genet hyena jackal koala"
)


@pytest.fixture
def ask(opened: Callable[..., Workspace]) -> Callable[[str], set[str]]:
    """Asks what fits a message, among some items that fit none."""
    workspace = opened()
    with workspace.store.batch("what is known"):
        for number, text in enumerate(FILLER):
            workspace.store.put(MemoryItem(text, memory_type="knowledge", id=f"f{number}"))
        put = workspace.store.put
        put(MemoryItem("It wants a quiet room.", memory_type="knowledge", id="tagged", tags=("kestrel",)))
        put(
            MemoryItem(
                "The zeppelin hangar opens at noon beside the copper canal bridge.",
                memory_type="knowledge",
                id="hangar",
            )
        )
        put(MemoryItem("Zeppelin tickets are sold online.", memory_type="knowledge", id="tickets"))

    def call(message: str) -> set[str]:
        fit = Fit(message, workspace.store.counted())
        return {hit.item.id for hit in fit.among(workspace.recaller.search(Query(text=message, limit=15)).hits)}

    return call


def test_a_tag_says_what_an_item_is_about(ask: Callable[[str], set[str]]) -> None:
    """C6: a word that is in an item's tags alone brings it up."""
    assert ask("what about Kestrel?") == {"tagged"}


def test_the_best_keeps_back_what_is_far_behind(ask: Callable[[str], set[str]]) -> None:
    """C6: where one item has all of the words, another with one of them is not reported besides."""
    assert ask("when does the zeppelin hangar open?") == {"hangar"}
    assert ask("zeppelin") == {"hangar", "tickets"}


def test_of_a_long_message_its_matter_counts(ask: Callable[[str], set[str]]) -> None:
    """C6: a message of many significant words still brings up what shares the weightiest of them."""
    assert ask(f"zeppelin hangar opens noon copper canal bridge {OTHERS}") == {"hangar"}
