"""What somebody reads who meets sources, corrections, conventions and mounts for the first time (P1-P7)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from memfs import Action, MemoryLayer, Outcome, QueryInvalid, SchemaInvalid, SettingInvalid, StateSnapshot
from memfs.learning.preferences import passed_over

from .conftest import Memfs


def _write(root: Path, text: str) -> None:
    (root / "memfs.toml").write_text(text)


@pytest.mark.parametrize("verb", [("inject",), ("warn", "deploy it")])
def test_p2_a_mistyped_source_is_reported_with_its_nearest(memfs: Memfs, root: Path, verb: tuple[str, ...]) -> None:
    """Once it is trusted, anyone who asks learns that it is left out."""
    _write(root, '[memory]\nautomatic = ["preferencs"]\ntriggered = ["episodc", "semantic"]\n')
    ran = memfs("agent", *verb)
    assert (ran.code, ran.out) == (0, "")
    assert "['episodc'] in memory.triggered is ignored: nobody has trusted this workspace" in ran.err
    memfs("admin", "trust", "--yes")
    result = memfs("agent", *verb, "--json")
    assert [problem["code"] for problem in result.json["problems"]] == ["SourceUnusable"]
    name = "preferences" if verb[0] == "inject" else "episodic"
    assert f"is left out: no installed package offers it; did you mean '{name}'?" in result.err


def test_p2_a_built_in_source_in_the_wrong_list_is_reported(memfs: Memfs, root: Path) -> None:
    """It is not enabled there, and anyone who asks for context learns where it belongs."""
    _write(root, '[memory]\nautomatic = ["episodic"]\n')
    assert "'episodic' is left out: its layer is triggered; name it in memory.triggered" in memfs("agent", "inject").err


def test_p2_a_module_that_is_not_there_has_a_remedy(memfs: Memfs) -> None:
    """It says where a module has to be."""
    ran = memfs("--set", "memory.triggered=no_such_module:Source", "agent", "warn", "deploy it")
    assert "No module named 'no_such_module'" in ran.err
    assert "put its folder on PYTHONPATH" in ran.err


NOISY = """
class Noisy:
    name, layer = "noisy", "triggered"
    async def get_context(self, state):
        print("NOISE")
        return "It says so."
    def configure(self, config):
        pass
"""


def test_p2_what_a_source_prints_is_not_context(memfs: Memfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stray print neither reaches an agent nor breaks JSON."""
    (tmp_path / "noisy_source.py").write_text(NOISY)
    monkeypatch.syspath_prepend(tmp_path)
    named = ("--set", "memory.triggered=noisy_source:Noisy")
    ran = memfs(*named, "agent", "warn", "deploy it", "--json")
    assert "It says so." in ran.json["text"]
    assert "NOISE" in ran.err


def test_p5_bounds_are_written_out(memfs: Memfs) -> None:
    """A person reads 1000000 and no power of ten."""
    ran = memfs("--set", "memory.automatic_tokens=-1", "agent", "inject")
    assert "is not a whole number from 0 to 1000000\n" in ran.err
    assert "a number from 0.05 to 60" in memfs("--set", "memory.source_seconds=0", "agent", "inject").err


def test_p4_what_a_correction_contradicts_is_reported(memfs: Memfs) -> None:
    """Two wishes that exclude each other are named; without a correction the whole message is one."""
    tabs = memfs("agent", "correct", "Always use tabs for indentation in Python.", "--json").json
    first = tabs["preferences"][0]["id"]
    ran = memfs("agent", "correct", "Never use tabs for indentation in Python. The weather is nice.")
    assert f"  contradicts {first}: this one is given; 'memfs team conflicts' settles it" in ran.out
    whole = memfs("agent", "correct", "British spelling in all texts. Thank you.", "--json").json
    assert [one["content"] for one in whole["preferences"]] == ["British spelling in all texts. Thank you."]
    assert passed_over("> Never do that.\nUse pnpm instead of npm. Hello there, all.") == ("Hello there, all.",)


def test_p4_a_secret_in_a_correction_is_refused_with_what_can_be_done(memfs: Memfs) -> None:
    """The option that is named is one that the verb has."""
    ran = memfs("agent", "correct", "Always use the token ghp_" + "a1B2" * 9)
    assert (ran.code, "take it out, and revoke it" in ran.err, "--allow-secret" in ran.err) == (1, True, True)
    assert "--allow-secret" in memfs("agent", "correct", "--help").out


def test_p4_a_slip_in_warned_and_a_secret_are_reported(memfs: Memfs) -> None:
    """The episode is kept as it was given; the person learns of both."""
    token = "ghp_" + "a1B2" * 9
    ran = memfs(
        "agent", "episode", "record", "x", "--outcome", "failure", "--error", f"key {token}", "--warned", "nope"
    )
    assert ran.code == 0
    assert "--warned nope: no memory has that id" in ran.err
    assert "what looks like a secret in the error was blacked out" in ran.err
    assert memfs("agent", "episode", "record", "y", "--outcome", "success", "--warned", "team:rule").err == ""


def test_p7_recall_gives_what_is_superseded_as_an_earlier_version(memfs: Memfs) -> None:
    """Beneath what replaced it; alone, and as its own hit with --no-dedupe, it is marked."""
    for name, seconds in (("t30", 30), ("t60", 60)):
        memfs("remember", f"The timeout of the gateway is {seconds} seconds", "--id", name)
    memfs("team", "conflicts", "resolve", "t30", "t60", "--keep", "t60")
    lines = memfs("recall", "gateway timeout").out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("t")] == ["t60"]
    assert any(line.startswith("  earlier: t30 (") for line in lines)
    lines = memfs("recall", "gateway timeout", "--no-dedupe").out.splitlines()
    assert [line.endswith("  superseded") for line in lines if line.startswith("t")] == [False, True]
    hits = memfs("recall", "gateway timeout", "--no-dedupe", "--json").json["hits"]
    assert [hit.get("status") for hit in hits] == [None, "superseded"]


def test_p6_silence_is_explained(memfs: Memfs, root: Path) -> None:
    """Nothing is remembered, or the agent has been given it already: these are two things."""
    assert "nothing is remembered that belongs in every prompt" in memfs("agent", "inject").err
    kept = memfs("agent", "correct", "Never deploy on Fridays.", "--json").json["preferences"][0]["id"]
    (root / "AGENTS.md").write_text("Never deploy on Fridays.\n")
    ran = memfs("agent", "inject")
    assert (ran.code, ran.out, f"agent's files already: {kept}" in ran.err) == (0, "", True)
    asked = memfs("team", "conflicts", "resolve", "t30", "t60")
    assert (asked.code, "resolve t30 OTHER --keep ID'" in asked.err) == (1, True)


def test_p7_conventions_say_what_is_missing_for_agents_to_be_reported(memfs: Memfs, root: Path) -> None:
    """From remembered to accepted to given to agents: each step names the next."""
    assert "no convention is accepted yet" in memfs("team", "agents-md", "check").err
    wrote = memfs("team", "agents-md", "write")
    assert (wrote.code, "no convention is accepted yet" in wrote.err) == (0, True)
    memfs("remember", "Times are UTC", "--type", "convention", "--id", "utc")
    assert "'memfs team convention accept ID' decides" in memfs("team", "convention").err
    accepted = memfs("team", "convention", "accept", "utc")
    assert "'memfs team agents-md write', or with \"conventions\" in memory.automatic" in accepted.err
    assert "accept" not in memfs("team", "convention").err
    _write(root, '[memory]\nautomatic = ["preferences", "conventions"]\n')
    memfs("team", "convention", "propose", "utc")
    assert "agents-md" not in memfs("team", "convention", "accept", "utc").err
    assert "| - Times are UTC" in memfs("agent", "inject").out


def test_p7_a_mount_that_does_not_count_is_reported_by_recall(memfs: Memfs, root: Path) -> None:
    """Anyone who wrote it into ``memfs.toml`` learns why nothing comes, unless it is given for this command."""
    _write(root, '[mounts]\nteam = "../nowhere"\n')
    assert "mounts.team is ignored: nobody has trusted this workspace; look at it, then: memfs admin trust" in (
        memfs("recall", "billing").err
    )
    assert "ignored" not in memfs("recall", "billing", "--own").err
    given = memfs("--set", "mounts.team=../nowhere", "recall", "billing").err
    assert ("ignored" in given, "the mount 'team' is left out" in given) == (False, True)
    assert "what is mounted is only read" in memfs("forget", "team:pool").err


def test_init_prints_few_lines(bare: Memfs, tmp_path: Path) -> None:
    """What was written and what was chosen are seen at one glance (D1)."""
    assert len(bare("init", str(tmp_path / "W")).out.splitlines()) < 9


def test_p1_a_layer_says_where_it_works(tmp_path: Path) -> None:
    """``MemoryLayer.default()`` says which workspace it uses."""
    with MemoryLayer.default(tmp_path / "W") as layer:
        assert repr(layer) == f"<MemoryLayer {tmp_path / 'W'}>"
    assert repr(layer) == "<MemoryLayer closed>"


class Broken:
    """A source that fails when it is asked."""

    name, layer = "broken", "automatic"

    async def get_context(self, state: StateSnapshot) -> str:
        """Fail."""
        raise ValueError("out of luck")

    def configure(self, config: dict[str, Any]) -> None:
        """Take nothing."""


def test_p2_slips_with_a_custom_source_have_a_remedy() -> None:
    """For a class the remedy is to make it a source; one that fails is named with what to do."""
    with MemoryLayer(":memory:") as layer:
        with pytest.raises(SettingInvalid, match="Broken is a class"):
            layer.add_plugin(Broken)  # type: ignore[arg-type]
        layer.add_plugin(Broken())
        assert asyncio.run(layer.get_automatic()) == ""
        (problem,) = layer.report()
        assert ("out of luck" in problem.message, problem.hint) == (True, "mend it, or take it out")


def test_p4_slips_in_python_name_the_argument() -> None:
    """Each says what would be right."""
    state = StateSnapshot.create(files=["a.py"], context="edit a.py")
    wrong: Any = ValueError("it broke")
    with MemoryLayer(":memory:") as layer:
        with pytest.raises(SchemaInvalid, match=r"error_message: .* an exception .*give what it says"):
            asyncio.run(layer.record_outcome(state, Action("edit"), Outcome.FAILURE, error=wrong))
        with pytest.raises(SchemaInvalid, match=r"action: expected Action\(tool, description\)"):
            asyncio.run(layer.record_outcome(state, wrong, Outcome.FAILURE))
        with pytest.raises(QueryInvalid, match="query: expected text"):
            asyncio.run(layer.recall(wrong))
