"""The memory context file: what it says, what it extends, and what follows an edit (M4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memfs import trust
from memfs.config import (
    FollowedContext,
    load_memory_context,
    memory_context_names,
    memory_context_problems,
)
from memfs.errors import ContentError, NotRegularFile, SettingInvalid
from memfs.fs.tree import Tree
from memfs.model.learning import BehaviorAction, MemoryConfig, Trigger
from memfs.resources import template_text
from memfs.workspace import Workspace

FOLDER = "ContextMemory/configuration"
SEED = """\
metadata:
  type: memory
  name: Workspace Memory

intent_context:
  business_goal: Capture and apply learned knowledge
  extends: ../../../universal/memory-base

polymorphic_config:
  memory_config:
    storage_type: vector_db  # or file_based
    embedding_model: text-embedding-ada-002
    max_memories: 10000
    pattern_threshold: 3  # Occurrences before pattern

behavior_rules:
  - trigger: context_accessed
    action: inject_relevant_memories

  - trigger: task_completed
    action: extract_learnings

  - trigger: pattern_detected
    action: create_reusable_knowledge
"""


def text(name: str, extends: str = "", rules: str = "", **config: object) -> str:
    """A memory context's file."""
    lines = ["metadata:", "  type: memory", f"  name: {name}"]
    lines += ["intent_context:", f"  extends: {extends}"] if extends else []
    lines += ["polymorphic_config:", "  memory_config:"] if config else []
    lines += [f"    {key}: {value}" for key, value in config.items()]
    return "\n".join([*lines, rules, ""])


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    """A folder like a workspace's."""
    (tmp_path / "w" / FOLDER / "contexts").mkdir(parents=True)
    tree = Tree(tmp_path / "w")
    yield tree
    tree.close()


def write(tree: Tree, path: str, content: str) -> None:
    """Write a file as a person would."""
    (tree.root / path).parent.mkdir(parents=True, exist_ok=True)
    (tree.root / path).write_text(content)


def main(tree: Tree, content: str) -> None:
    """Write the main context."""
    write(tree, f"{FOLDER}/memory_context.yaml", content)


def named(tree: Tree, name: str, content: str) -> None:
    """Write a context of its own name."""
    write(tree, f"{FOLDER}/contexts/{name}.yaml", content)


def test_without_a_file_the_defaults_hold(tree: Tree) -> None:
    """Nobody has to write a memory context (M4)."""
    assert load_memory_context(tree) == MemoryConfig()


def test_the_seeds_file_counts_as_it_is(tree: Tree) -> None:
    """Every value of seed 002's own file is read, and its base found by its name (M4)."""
    main(tree, SEED)

    config = load_memory_context(tree)

    assert (config.name, config.business_goal) == ("Workspace Memory", "Capture and apply learned knowledge")
    assert (config.storage_type, config.embedding_model) == ("vector_db", "text-embedding-ada-002")
    assert (config.max_memories, config.pattern_threshold) == (10_000, 3)
    assert [(rule.trigger, rule.action) for rule in config.behavior_rules] == [
        (Trigger.CONTEXT_ACCESSED, BehaviorAction.INJECT_RELEVANT_MEMORIES),
        (Trigger.TASK_COMPLETED, BehaviorAction.EXTRACT_LEARNINGS),
        (Trigger.PATTERN_DETECTED, BehaviorAction.CREATE_REUSABLE_KNOWLEDGE),
    ]


def test_the_templates_are_the_defaults(tree: Tree) -> None:
    """The template and its base say what holds without them (M4, K6)."""
    main(tree, template_text("memory_context"))

    config = load_memory_context(tree)

    assert config == MemoryConfig(business_goal="Capture and apply learned knowledge")
    assert load_memory_context(tree, "universal/memory-base").behavior_rules == config.behavior_rules


def test_what_a_context_leaves_out_comes_from_what_it_extends(tree: Tree) -> None:
    """Values are taken key by key from the nearest context that has them; rules as a whole (M4)."""
    named(tree, "company", text("Company", max_memories=50, prune_below=0.4, rules="behavior_rules: []"))
    named(tree, "team", text("Team", "company", max_memories=70))
    main(tree, text("Mine", "team", pattern_threshold=5))

    config = load_memory_context(tree)

    assert (config.name, config.pattern_threshold) == ("Mine", 5)
    assert (config.max_memories, config.prune_below, config.behavior_rules) == (70, 0.4, ())
    assert config.similarity_threshold == MemoryConfig().similarity_threshold


@pytest.mark.parametrize("written", ["memory_context", "../memory_context.yaml"])
def test_a_context_extends_the_main_one(tree: Tree, written: str) -> None:
    """What holds for all is in one file, and others say only what differs (M4)."""
    main(tree, text("Main", max_memories=70))
    named(tree, "team", text("Team", written, pattern_threshold=5))

    config = load_memory_context(tree, "team")

    assert (config.name, config.max_memories, config.pattern_threshold) == ("Team", 70, 5)


@pytest.mark.parametrize("written", ["../../../elsewhere.yaml", "/etc/base.yaml", "contexts/team.yaml", "a\\b/c"])
def test_a_context_extends_no_path(tree: Tree, written: str) -> None:
    """What is not a name is refused with file, line and field, whether such a file exists or not (M4)."""
    named(tree, "team", text("Team"))
    (tree.root.parent / "elsewhere.yaml").write_text(text("Elsewhere"))
    main(tree, text("Mine", written))

    with pytest.raises(SettingInvalid, match="to extend") as caught:
        load_memory_context(tree)

    assert (caught.value.path, caught.value.line) == (f"{FOLDER}/memory_context.yaml", 5)
    assert caught.value.field == "intent_context.extends"
    assert caught.value.hint


def test_a_link_is_not_followed(tree: Tree) -> None:
    """A link inside the workspace leads a context nowhere (M4)."""
    outside = tree.root.parent / "elsewhere.yaml"
    outside.write_text(text("Elsewhere"))
    (tree.root / FOLDER / "contexts" / "team.yaml").symlink_to(outside)
    main(tree, text("Mine", "team"))

    with pytest.raises(NotRegularFile, match="contexts/team"):
        load_memory_context(tree)


def test_a_missing_base_is_named_with_the_nearest(tree: Tree) -> None:
    """The error says which context is not there, and which may be meant (M4)."""
    named(tree, "team-base", text("Team"))
    main(tree, text("Mine", "team-bas"))

    with pytest.raises(SettingInvalid, match="team-bas") as caught:
        load_memory_context(tree)
    with pytest.raises(SettingInvalid, match="no memory context 'rewiews'"):
        load_memory_context(tree, "rewiews")

    assert caught.value.hint == "did you mean 'team-base'?"
    assert caught.value.line == 5


def test_contexts_that_extend_each_other_are_an_error(tree: Tree) -> None:
    """A circle, however long, and a tower without end are refused by name (M4, L7)."""
    named(tree, "one", text("One", "two"))
    named(tree, "two", text("Two", "one"))
    for number in range(20):
        named(tree, f"deep-{number}", text("Deep", f"deep-{number + 1}"))
    named(tree, "deep-20", text("Deep"))

    with pytest.raises(SettingInvalid, match=r"one\.yaml -> .*two\.yaml -> .*one\.yaml"):
        load_memory_context(tree, "one")
    with pytest.raises(SettingInvalid, match="more than 16"):
        load_memory_context(tree, "deep-0")


@pytest.mark.parametrize(
    ("wrong", "right"), [("trigger: context_acessed", "context_accessed"), ("action: extract_learning", "extract_")]
)
def test_unknown_triggers_and_actions_are_errors(tree: Tree, wrong: str, right: str) -> None:
    """A slip in a rule is a schema error with its line and what would be right (M4)."""
    rule = {"trigger": "context_accessed", "action": "extract_learnings"}
    key, _, value = wrong.partition(": ")
    rule[key] = value
    main(tree, text("Mine", rules=f"behavior_rules:\n- trigger: {rule['trigger']}\n  action: {rule['action']}"))

    with pytest.raises(ContentError, match=right) as caught:
        load_memory_context(tree)

    assert caught.value.line in (5, 6)


def test_several_contexts_may_exist(opened: Callable[..., Workspace]) -> None:
    """A setting chooses the one that holds (M4)."""
    first = opened()
    folder = first.root / FOLDER / "contexts"
    folder.mkdir()
    (folder / "reviews.yaml").write_text(text("Reviews", pattern_threshold=2))
    (folder / "notes.txt").write_text("no context")

    second = opened(first.root, memory__context="reviews")

    assert first.memory_config.name == "Workspace Memory"
    assert (second.memory_config.name, second.memory_config.pattern_threshold) == ("Reviews", 2)
    assert memory_context_names(second.parts.tree) == ["reviews"]


def test_an_open_workspace_follows_an_edit(opened: Callable[..., Workspace]) -> None:
    """A new version holds at once; an invalid one is reported, and the last good one holds on (M4, K5)."""
    workspace = opened()
    file = workspace.root / FOLDER / "memory_context.yaml"
    before = workspace.memory_config.max_memories
    file.write_text(text("Mine", max_memories=7))
    changed = workspace.memory_config.max_memories
    file.write_text(text("Mine", max_memories="many"))
    invalid = workspace.memory_config.max_memories
    problems = [problem for problem in workspace.store.problems() if "max_memories" in problem.message]
    file.write_text(text("Mine", max_memories=9))

    assert (before, changed, invalid, workspace.memory_config.max_memories) == (10_000, 7, 7, 9)
    assert problems


def test_check_names_what_is_wrong(tree: Tree) -> None:
    """Every context is looked at, and a rule that could do nothing is named (M4)."""
    main(tree, text("Mine", rules="behavior_rules:\n- trigger: task_completed\n  action: inject_relevant_memories"))
    named(tree, "lost", text("Lost", "nowhere"))
    named(tree, "fine", text("Fine"))

    problems = list(memory_context_problems(tree))

    assert [(problem.path, problem.code) for problem in problems] == [
        (f"{FOLDER}/memory_context.yaml", "SettingInvalid"),
        (f"{FOLDER}/contexts/lost.yaml", "SettingInvalid"),
    ]


def test_check_names_a_choice_that_is_not_there(opened: Callable[..., Workspace]) -> None:
    """A context that is chosen and missing is a problem, and recall goes on without it (M4)."""
    workspace = opened(memory__context="reviews")

    (problem,) = [found for found in workspace.checker.check() if "reviews" in found.message]

    assert (problem.code, workspace.recaller.search("anything").hits) == ("SettingInvalid", ())


def test_recall_learns_of_a_search_by_meaning(opened: Callable[..., Workspace]) -> None:
    """Whether a search by meaning is asked for is known without reading the schema, and follows edits (M5)."""
    workspace = opened()
    file = workspace.root / FOLDER / "memory_context.yaml"
    context = FollowedContext(workspace.parts.seen, "", lambda error: None)
    answers = [context.surely_words_only()]
    for content in (text("Mine", max_memories=7), text("Mine", "team"), text("Mine", storage_type="vector_db")):
        file.write_text(content)
        answers.append(context.surely_words_only())
    context.config()
    file.write_text(text("Mine", "universal/memory-base"))

    assert [*answers, context.surely_words_only()] == [True, True, False, False, True]
    assert not FollowedContext(workspace.parts.seen, "team", lambda error: None).surely_words_only()


def test_a_service_counts_only_where_the_workspace_is_trusted(opened: Callable[..., Workspace]) -> None:
    """No repository sends anybody's texts to a service of its choice (M5)."""
    workspace = opened()
    endpoint = "http://127.0.0.1:9/v1"
    (workspace.root / FOLDER / "memory_context.yaml").write_text(text("Mine", embedding_endpoint=endpoint))
    untrusted = load_memory_context(workspace.parts.tree).embedding_endpoint

    trust.grant(workspace.root)
    trusted = load_memory_context(workspace.parts.tree).embedding_endpoint
    (workspace.root / FOLDER / "memory_context.yaml").write_text(text("Mine", embedding_endpoint=f"{endpoint}/other"))

    assert (untrusted, trusted) == ("", endpoint)
    assert load_memory_context(workspace.parts.tree).embedding_endpoint == ""
    assert trust.status_of(workspace.root).problems()[0].code == "Untrusted"


def test_a_context_without_metadata_gets_an_error_that_says_what_to_write(opened: Callable[..., Workspace]) -> None:
    """The remedy names the keys that are needed inside, too, so that following it is enough (M4)."""
    workspace = opened()
    file = workspace.root / FOLDER / "memory_context.yaml"
    file.write_text("polymorphic_config:\n  memory_config:\n    max_memories: 7\n")

    (problem,) = memory_context_problems(workspace.parts.tree)

    assert problem.hint.startswith("add 'metadata: {type: memory, name: ...}'")
    file.write_text("metadata: {type: memory, name: Ours}\n" + file.read_text())
    assert list(memory_context_problems(workspace.parts.tree)) == []
