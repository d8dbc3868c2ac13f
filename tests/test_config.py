"""Settings: reading, origins, hints, finding the workspace."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memfs import trust
from memfs.config import first_toml, load, with_memory
from memfs.errors import FormatUnsupported, NotRegularFile, SettingInvalid, WorkspaceNotFound
from memfs.format.toml_text import FORMAT_VERSION, with_format_version
from memfs.fs.workspace_location import find_workspace
from memfs.resources import schema_text, template_text
from memfs.settings import BUILT_IN_SOURCES, SOURCE_TABLES, SPECS, Settings


def write(root: Path, text: str) -> Path:
    (root / "memfs.toml").write_text(text, encoding="utf-8")
    return root


def test_without_a_file_every_setting_has_its_default(tmp_path: Path) -> None:
    """A workspace without memfs.toml behaves by the defaults, and says so."""
    settings = load(tmp_path, environ={})
    assert settings.index.engine == "whoosh"
    assert settings.history.commit == "manual"
    assert set(settings.origins.values()) == {"default"}
    assert settings.origins.keys() == SPECS.keys()


def test_argument_beats_variable_beats_file_beats_default(tmp_path: Path) -> None:
    """Precedence is argument, MEMFS_* variable, file, default, and each value's origin says which won."""
    root = write(tmp_path, '[index]\nengine = "memory"\n\n[recall]\nlimit = 5\n\n[history]\nadopt = "auto"\n')
    environ = {"MEMFS_INDEX_ENGINE": "sqlite", "MEMFS_RECALL_LIMIT": "7"}
    settings = load(root, arguments={"index.engine": "whoosh"}, environ=environ)
    assert (settings.index.engine, settings.origins["index.engine"]) == ("whoosh", "argument")
    assert (settings.recall.limit, settings.origins["recall.limit"]) == (7, "MEMFS_RECALL_LIMIT")
    assert (settings.history.adopt, settings.origins["history.adopt"]) == ("auto", "memfs.toml:8")
    assert settings.origins["watch.enabled"] == "default"


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        ('[index]\nengin = "sqlite"\n', 2, "did you mean 'engine'?"),
        ('[indx]\nengine = "sqlite"\n', 1, "did you mean 'index'?"),
        ('[recall]\ncommit = "each"\n', 2, "it belongs in [history]"),
        ('[history]\n\n# a remark\ncommit = "sesion"\n', 4, "did you mean 'session'?"),
        ('[recall]\nlimit = "ten"\n', 2, "the default is 10"),
        ("[recall]\nlimit = 0\n", 2, "the default is 10"),
        ("[recall]\nlimit = true\n", 2, "the default is 10"),
        ("[history]\ninterval_seconds = nan\n", 2, "the default is 1.0"),
        ('[watch]\nenabled = "yes"\n', 2, "the default is true"),
        ('[memory]\nautomatic = "preferences"\n', 2, 'the default is ["preferences"]'),
        ("[memory.semantik]\nmin_confidence = 1\n", 1, "did you mean 'semantic'?"),
        ("[memory.episodic]\nmax_warning = 1\n", 2, "did you mean 'max_warnings'?"),
        ("[review]\nmin = 1\n", 2, "known here: endpoint, model, relevance_seconds, reviewers, seconds, threshold"),
        ('index.engin = "sqlite"\n', 1, "did you mean 'engine'?"),
        ("index = 3\n", 1, "write [index] above its keys"),
    ],
)
def test_a_wrong_setting_is_refused_with_line_and_hint(tmp_path: Path, text: str, line: int, hint: str) -> None:
    """An unknown name or a wrong value names file, line and the nearest right one (P5)."""
    with pytest.raises(SettingInvalid) as caught:
        load(write(tmp_path, text), environ={})
    assert (caught.value.path, caught.value.line, caught.value.hint) == ("memfs.toml", line, hint)


def test_what_is_not_toml_is_refused_with_its_place(tmp_path: Path) -> None:
    """A syntax error names line and column."""
    with pytest.raises(SettingInvalid) as caught:
        load(write(tmp_path, "[index]\nengine = whoosh\n"), environ={})
    assert (caught.value.path, caught.value.line) == ("memfs.toml", 2)
    assert caught.value.message.startswith("not TOML: ")
    with pytest.raises(SettingInvalid, match=r"toml:3: not TOML: [^(]*\("):
        load(write(tmp_path, "[index]\n\nengine = "), environ={})


@pytest.mark.parametrize("text", ["[review]\n[recall]\n[review]\n", "[recall]\nlimit = 1\nlimit = 2\n"])
def test_a_table_written_twice_gets_an_error_that_says_how_to_join(tmp_path: Path, text: str) -> None:
    """An example's ``[review]`` pasted below the template's is an error that says to put the lines together."""
    with pytest.raises(SettingInvalid, match="the lines of a table stand together"):
        load(write(tmp_path, text), environ={})


def test_a_deeply_nested_file_is_refused(tmp_path: Path) -> None:
    """Nesting beyond reason is an error, not a crash."""
    with pytest.raises(SettingInvalid, match=r"memfs\.toml"):
        load(write(tmp_path, "x = " + "[" * 100_000), environ={})


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    """Bytes that are not text are named as such."""
    (tmp_path / "memfs.toml").write_bytes(b"[index]\nengine = '\xff'\n")
    with pytest.raises(SettingInvalid, match="not UTF-8"):
        load(tmp_path, environ={})


def test_a_link_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    """memfs.toml is read only if it is a file of its own."""
    (tmp_path / "other.toml").write_text("")
    (tmp_path / "memfs.toml").symlink_to("other.toml")
    with pytest.raises(NotRegularFile):
        load(tmp_path, environ={})


@pytest.mark.parametrize(
    ("variable", "written", "key", "value"),
    [
        ("MEMFS_WATCH_ENABLED", "off", "watch.enabled", False),
        ("MEMFS_HISTORY_ALLOW_DETACHED", "1", "history.allow_detached", True),
        ("MEMFS_HISTORY_INTERVAL_SECONDS", "2", "history.interval_seconds", 2.0),
        ("MEMFS_MEMORY_AUTOMATIC", "preferences, conventions", "memory.automatic", ("preferences", "conventions")),
        (
            "MEMFS_MEMORY_AUTOMATIC",
            '["preferences", "conventions"]',
            "memory.automatic",
            ("preferences", "conventions"),
        ),
        ("MEMFS_WATCH_DEBOUNCE_MS", "250", "watch.debounce_ms", 250),
    ],
)
def test_variables_are_read_by_type(tmp_path: Path, variable: str, written: str, key: str, value: object) -> None:
    """A MEMFS_* variable is text that becomes the setting's own type."""
    settings = load(tmp_path, environ={variable: written})
    assert settings.get(key) == value
    assert type(settings.get(key)) is type(value)
    assert settings.origins[key] == variable


def test_a_mistyped_variable_is_refused(tmp_path: Path) -> None:
    """A MEMFS_* variable that names no setting of a known table is an error with the nearest name."""
    with pytest.raises(SettingInvalid) as caught:
        load(tmp_path, environ={"MEMFS_INDEX_ENGIN": "sqlite"})
    assert caught.value.hint == "did you mean 'MEMFS_INDEX_ENGINE'?"


def test_a_wrong_value_in_a_variable_names_the_variable(tmp_path: Path) -> None:
    """The error points at the variable, not at the file."""
    with pytest.raises(SettingInvalid) as caught:
        load(tmp_path, environ={"MEMFS_INDEX_ENGINE": "sqlight"})
    assert (caught.value.path, caught.value.field) == (None, "MEMFS_INDEX_ENGINE")
    assert caught.value.hint == "did you mean 'sqlite'?"


def test_variables_of_other_things_are_left_alone(tmp_path: Path) -> None:
    """A variable that begins with MEMFS_ but with no table's name is none of our business."""
    assert load(tmp_path, environ={"MEMFS_WORKSPACE": "/x", "MEMFS_THEME": "dark"}).index.engine == "whoosh"


def test_an_argument_may_be_text(tmp_path: Path) -> None:
    """What comes from a command line is read by the setting's type."""
    settings = load(tmp_path, arguments={"recall.limit": "3", "watch.enabled": "no"}, environ={})
    assert (settings.recall.limit, settings.watch.enabled) == (3, False)


def flat(shape: dict[str, Any], home: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The rules of a schema by dotted key."""
    for name, rule in shape.get("properties", {}).items():
        if rule.get("type") == "object":
            yield from flat(rule, f"{home}{name}.")
        else:
            yield f"{home}{name}", rule


def test_the_schema_and_the_template_agree_with_the_settings(tmp_path: Path) -> None:
    """memfs_toml.schema.json has exactly these settings, defaults and choices, and the template is valid (K6)."""
    described = dict(flat(json.loads(schema_text("memfs_toml"))))
    assert described.keys() == {"format_version", *SPECS}
    for key, spec in SPECS.items():
        default = list(spec.default) if isinstance(spec.default, tuple) else spec.default
        assert described[key]["default"] == default, key
        assert described[key].get("enum", []) == list(spec.choices), key
        assert (described[key].get("minimum"), described[key].get("maximum")) == (spec.low, spec.high), key
    assert set(load(write(tmp_path, template_text("memfs.toml")), environ={}).origins.values()) == {"default"}


def test_an_unknown_argument_is_refused(tmp_path: Path) -> None:
    """Arguments are as strict as the file."""
    with pytest.raises(SettingInvalid, match=r"index\.engin"):
        load(tmp_path, arguments={"index.engin": "sqlite"}, environ={})


def test_get_names_the_nearest_key() -> None:
    """Asking for an unknown key names the one that was probably meant."""
    with pytest.raises(SettingInvalid) as caught:
        Settings().get("index.engines")
    assert caught.value.hint == "did you mean 'index.engine'?"


def test_source_tables_are_kept_for_their_sources(tmp_path: Path) -> None:
    """[memory.<source>] is open to sources listed by the workspace, and known keys of built-in ones."""
    text = '[memory]\ntriggered = ["mine"]\n[memory.mine]\nanything = 1\n[memory.preferences]\nmax_items = 3\n'
    trust.grant(write(tmp_path, text))
    settings = load(tmp_path, environ={})
    assert settings.memory.triggered == ("mine",)
    assert settings.memory.sources["mine"] == {"anything": 1}
    assert settings.origins["memory.mine.anything"] == "memfs.toml:3"
    assert settings.memory.sources["preferences"] == {"max_items": 3}


@pytest.mark.parametrize(
    "policies", [{"history.commit": "manual"}, {"history.commit": "interval", "history.adopt": "auto"}]
)
def test_the_first_file_says_what_was_chosen_and_the_format(tmp_path: Path, policies: dict[str, str]) -> None:
    """init's file has at most ten lines: the version of the format and the chosen policies (D1)."""
    text = first_toml(policies)
    settings = load(write(tmp_path, text), environ={})
    assert {key: settings.get(key) for key in policies} == policies
    assert {key for key, origin in settings.origins.items() if origin != "default"} == policies.keys()
    assert tomllib.loads(text)["format_version"] == FORMAT_VERSION
    assert len(text.splitlines()) <= 10


def test_a_newer_format_is_refused_before_its_settings(tmp_path: Path) -> None:
    """A workspace of a newer format says so, whatever settings it has that this memfs does not know."""
    with pytest.raises(FormatUnsupported) as caught:
        load(write(tmp_path, f"format_version = {FORMAT_VERSION + 1}\n\n[unheard]\nof = 1\n"), environ={})
    assert (caught.value.path, caught.value.field) == ("memfs.toml", "format_version")


@pytest.mark.parametrize("written", ["0", "-1", "true", '"2"', "2.0"])
def test_an_invalid_format_version_is_refused_with_its_line(tmp_path: Path, written: str) -> None:
    """``format_version`` is a whole number from 1."""
    with pytest.raises(SettingInvalid) as caught:
        load(write(tmp_path, f"# ours\nformat_version = {written}\n"), environ={})
    assert (caught.value.line, caught.value.field) == (2, "format_version")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "format_version = 2\n"),
        ("# ours\n[index]\n", "format_version = 2\n\n# ours\n[index]\n"),
        ("format_version = 1\n[a]\nformat_version = 3\n", "format_version = 2\n[a]\nformat_version = 3\n"),
    ],
)
def test_the_format_is_written_above_the_tables(before: str, after: str) -> None:
    """Only the line of the version changes; a new one is the first."""
    assert with_format_version(before) == after


def test_an_unknown_policy_is_refused() -> None:
    """first_toml never writes what load would refuse."""
    with pytest.raises(SettingInvalid):
        first_toml({"history.comit": "each"})
    with pytest.raises(SettingInvalid):
        first_toml({"history.commit": "sometimes"})


def begin(folder: Path) -> None:
    """Let a folder be a workspace."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memfs.toml").write_text("")


def test_the_workspace_is_the_nearest_parent(tmp_path: Path) -> None:
    """From a folder inside, the workspace around it is found."""
    inner = tmp_path / "w" / "a" / "b"
    inner.mkdir(parents=True)
    begin(tmp_path / "w")
    assert find_workspace(inner, environ={}) == tmp_path / "w"


@pytest.mark.parametrize(
    "left", ["", ".gitattributes", ".schemas/item.schema.json", "configuration/system_config.json"]
)
def test_a_folder_that_was_left_behind_is_not_a_workspace(tmp_path: Path, left: str) -> None:
    """A ContextMemory/ without memory and memfs.toml is passed over, and named where nothing else is found (D2)."""
    inner = tmp_path / "w" / "inner"
    (inner / "ContextMemory").mkdir(parents=True)
    if left:
        (inner / "ContextMemory" / left).parent.mkdir(exist_ok=True)
        (inner / "ContextMemory" / left).write_text("{}")
    with pytest.raises(WorkspaceNotFound, match=rf"ContextMemory/ in '{inner}' holds no memory") as caught:
        find_workspace(inner, environ={})
    assert f"memfs init {inner}" in (caught.value.hint or "")
    begin(tmp_path / "w")
    assert find_workspace(inner, environ={}) == tmp_path / "w"
    with pytest.raises(WorkspaceNotFound, match="no ContextMemory/ in"):
        find_workspace(tmp_path, environ={"MEMFS_WORKSPACE": ""})


@pytest.mark.parametrize("path", ["memories/note/2026-03/one.yaml", "iterations/iteration_001/system_state.json"])
def test_a_memory_alone_makes_a_workspace(tmp_path: Path, path: str) -> None:
    """Where memfs.toml was removed, any memory below ContextMemory/ still makes the folder a workspace (K2)."""
    (tmp_path / "ContextMemory" / path).parent.mkdir(parents=True)
    (tmp_path / "ContextMemory" / path).write_text("{}")
    assert find_workspace(tmp_path, environ={}) == tmp_path


def test_an_argument_beats_the_variable(tmp_path: Path) -> None:
    """MEMFS_WORKSPACE counts only where no folder was named."""
    for name in ("one", "two"):
        begin(tmp_path / name)
    environ = {"MEMFS_WORKSPACE": str(tmp_path / "two")}
    assert find_workspace(tmp_path / "one", environ=environ) == tmp_path / "one"
    assert find_workspace(None, environ=environ) == tmp_path / "two"


def test_the_current_folder_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With neither argument nor variable the search begins in the current folder."""
    begin(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert find_workspace(environ={}) == tmp_path


def test_no_workspace_offers_init(tmp_path: Path) -> None:
    """Where there is none, the error says how to make one."""
    with pytest.raises(WorkspaceNotFound) as caught:
        find_workspace(tmp_path, environ={})
    assert "memfs init" in (caught.value.hint or "")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A mistyped folder is not mistaken for one without a workspace."""
    with pytest.raises(WorkspaceNotFound, match="no folder"):
        find_workspace(tmp_path / "nowhere", environ={})
    with pytest.raises(WorkspaceNotFound) as caught:
        find_workspace(environ={"MEMFS_WORKSPACE": str(tmp_path / "nowhere")})
    assert caught.value.hint == "MEMFS_WORKSPACE names it"
    (tmp_path / "a.txt").touch()
    with pytest.raises(WorkspaceNotFound, match=r"a\.txt' is a file"):
        find_workspace(tmp_path / "a.txt", environ={})


def test_a_repositorys_file_cannot_loosen_what_protects_the_reader(tmp_path: Path) -> None:
    """What came with a clone may tighten; only the reader's own argument, variable or trust loosens."""
    write(tmp_path, "[security]\nallow_invisible = true\n")
    ignored = load(tmp_path, environ={})
    assert not ignored.security.allow_invisible
    assert ignored.origins["security.allow_invisible"] == "default; memfs.toml:2 is not trusted"
    assert load(tmp_path, environ={"MEMFS_SECURITY_ALLOW_INVISIBLE": "1"}).security.allow_invisible
    assert load(tmp_path, arguments={"security.allow_invisible": True}, environ={}).security.allow_invisible
    trust.grant(tmp_path)
    trusted = load(tmp_path, environ={})
    assert trusted.security.allow_invisible
    assert trusted.origins["security.allow_invisible"] == "memfs.toml:2"
    write(tmp_path, "[security]\nallow_invisible = false\n")
    trust.revoke(tmp_path)
    assert load(tmp_path, environ={}).origins["security.allow_invisible"] == "memfs.toml:2"


@pytest.mark.parametrize("number", ["9" * 5_000, "9999-99-99", '"\\ud800"'])
def test_what_no_toml_reader_can_hold_is_refused_as_a_setting(tmp_path: Path, number: str) -> None:
    """5,000 digits, an impossible day and half a character are errors of the file (faults rows 7 and 8)."""
    with pytest.raises(SettingInvalid, match=r"not TOML"):
        load(write(tmp_path, f"[recall]\nlimit = {number}\n"), environ={})


# -- sources and mounts -------------------------------------------------------------------------------------------
def test_p5_the_seeds_tables_are_read_whole(tmp_path: Path) -> None:
    """The ``[memory]`` tables of seed 004 count as written; what is left out has its default (P3, P5)."""
    text = (
        '[memory]\nautomatic = ["preferences"]\ntriggered = ["episodic", "semantic"]\non_demand = true\n\n'
        "[memory.preferences]\nmax_items = 10\n\n[memory.episodic]\nsimilarity_threshold = 1\n\n"
        "[memory.semantic]\nmin_confidence = 0.5\n"
    )
    settings = load(write(tmp_path, text), environ={})
    assert settings.memory.sources["episodic"] == {"similarity_threshold": 1.0, "max_warnings": 3}
    assert settings.get("memory.semantic.min_confidence") == 0.5
    assert settings.origins["memory.semantic.min_confidence"] == "memfs.toml:13"
    assert settings.memory.sources.keys() == SOURCE_TABLES.keys() == BUILT_IN_SOURCES.keys()
    assert settings.memory.sources["recent_session"] == {"max_items": 5, "max_age_days": 14.0}


@pytest.mark.parametrize(
    ("text", "line", "field", "hint"),
    [
        ("[memory.preferences]\nmax_item = 3\n", 2, "memory.preferences.max_item", "did you mean 'max_items'?"),
        ("[memory.preferences]\nmax_items = -1\n", 2, "memory.preferences.max_items", "the default is 10"),
        ("[memory.episodic]\nsimilarity_threshold = 1.5\n", 2, "memory.episodic.similarity_threshold", "is 0.7"),
        ("[memory.feedback]\nenabled = 1\n", 2, "memory.feedback.enabled", "the default is true"),
        ('[memory.semantic]\nmin_confidence = "high"\n', 2, "memory.semantic.min_confidence", "is 0.7"),
        ("[memory]\nautomatik = []\n", 2, "memory.automatik", "did you mean 'automatic'?"),
        ("[memory]\npreferences = 3\n", 2, "memory.preferences", ""),
        ("[memory.todo]\nx = 1\n", 1, None, ""),
        ("[mounts]\nteam = 3\n", 2, "mounts.team", "the default is"),
        ('[mounts]\n"Team A" = "x"\n', None, "mounts.Team A", "lower-case"),
        ("mounts = 3\n", 1, None, "write [mounts] above its keys"),
        ("[mounts.team]\npath = 1\n", 1, "mounts.team", "the default is"),
    ],
)
def test_p5_a_slip_in_a_sources_table_is_named(
    tmp_path: Path, text: str, line: int | None, field: str | None, hint: str
) -> None:
    """Names and values below ``[memory.<source>]`` and in ``[mounts]`` are checked like all others (P5)."""
    with pytest.raises(SettingInvalid) as caught:
        load(write(tmp_path, text), environ={})
    assert (caught.value.line, caught.value.field) == (line, field)
    assert hint in (caught.value.hint or "")


def test_p5_a_sources_value_has_a_variable_and_may_be_an_argument(tmp_path: Path) -> None:
    """Own values of sources follow the same precedence as all settings (P5)."""
    write(tmp_path, "[memory.preferences]\nmax_items = 3\n")
    environ = {"MEMFS_MEMORY_PREFERENCES_MAX_ITEMS": "4", "MEMFS_MEMORY_EPISODIC_MAX_WARNINGS": "1"}
    settings = load(tmp_path, arguments={"memory.episodic.max_warnings": "2"}, environ=environ)
    assert settings.memory.sources["preferences"] == {"max_items": 4}
    assert settings.memory.sources["episodic"]["max_warnings"] == 2
    with pytest.raises(SettingInvalid):
        load(tmp_path, environ={"MEMFS_MEMORY_PREFERENCES_MAX_ITEM": "4"})


def test_p7_mounts_count_by_trust_or_by_the_persons_own_word(tmp_path: Path) -> None:
    """A repository names no folder outside itself; a variable or an argument does (P7)."""
    write(tmp_path, '[mounts]\nteam = "../team"\n')
    assert load(tmp_path, environ={}).mounts == {}
    named = load(tmp_path, arguments={"mounts.other": "/srv/other"}, environ={"MEMFS_MOUNTS_MY_TEAM": "../x"})
    assert named.mounts == {"my_team": "../x", "other": "/srv/other"}
    assert named.get("mounts.other") == "/srv/other"
    trust.grant(tmp_path)
    trusted = load(tmp_path, environ={})
    assert (trusted.mounts, trusted.origins["mounts.team"]) == ({"team": "../team"}, "memfs.toml:2")
    write(tmp_path, '[mounts]\nteam = "../../elsewhere"\n')
    assert load(tmp_path, environ={}).mounts == {}


def test_p2_a_list_keeps_its_built_in_names_without_trust(tmp_path: Path) -> None:
    """Of a list in an untrusted file the built-in names count, and its origin names the others (P2)."""
    write(tmp_path, '[memory]\nautomatic = ["conventions", "theirs", "preferences", "my:Own"]\n')
    settings = load(tmp_path, environ={})
    assert settings.memory.automatic == ("conventions", "preferences")
    assert settings.origins["memory.automatic"] == "memfs.toml:2 without theirs, my:Own, not trusted"
    trust.grant(tmp_path)
    assert load(tmp_path, environ={}).memory.automatic == ("conventions", "theirs", "preferences", "my:Own")
    write(tmp_path, '[memory]\nautomatic = ["theirs", "my:Own"]\n')
    assert load(tmp_path, environ={}).memory.automatic == ("theirs", "my:Own")
    write(tmp_path, '[memory]\nautomatic = ["theirs", "their:Other"]\n')
    assert load(tmp_path, environ={}).memory.automatic == ()


def test_p5_the_seeds_tables_may_be_given_as_a_mapping() -> None:
    """What ``MemoryLayer.configure`` is given is checked by the same rules, and wins over what was there (P5)."""
    base = Settings()
    found = with_memory(base, {"automatic": ["conventions"], "episodic": {"max_warnings": 1}, "on_demand": False})
    assert (found.memory.automatic, found.memory.on_demand) == (("conventions",), False)
    assert found.memory.sources["episodic"] == {"similarity_threshold": 0.7, "max_warnings": 1}
    assert found.origins["memory.on_demand"] == "argument"
    again = with_memory(found, {"memory": {"triggered": ["my:Own"], "my:Own": {"depth": [1, {"x": 2}]}}})
    assert again.memory.automatic == ("conventions",)
    assert again.memory.sources["my:Own"] == {"depth": [1, {"x": 2}]}
    assert with_memory(again, {"my:Own": {}}).memory.sources["my:Own"] == {}
    assert with_memory(base, {"mine": {"x": 1}}, ["mine"]).memory.sources["mine"] == {"x": 1}
    assert base == Settings()
    slips: list[tuple[Any, str]] = [
        ({"automatik": []}, "did you mean 'automatic'?"),
        ({"episodic": {"max_warning": 1}}, "did you mean 'max_warnings'?"),
        ({"episodik": {"max_warnings": 1}}, "did you mean 'episodic'?"),
        ({"source_seconds": 0}, "the default is 2.0"),
        ({"memory": 3}, "write [memory] above its keys"),
        ([], "automatic"),
    ]
    for config, hint in slips:
        with pytest.raises(SettingInvalid) as caught:
            with_memory(base, config)
        assert hint in (caught.value.hint or "")
        assert caught.value.path is None


LEARNING = ("learning.patterns", "learning.rules")


@pytest.mark.parametrize("text", ["[memory]\non_demand = true\n", "[memory.episodic]\nmax_warnings = 2\n"])
def test_a_memory_table_asks_for_what_is_learned(tmp_path: Path, text: str) -> None:
    """A value below [memory] makes 'write' the default of learning.*; a table without any does not (P5)."""
    plain = load(write(tmp_path, "[memory]\n#on_demand = true\n[memory.episodic]\n"), environ={})
    assert [(plain.get(key), plain.origins[key]) for key in LEARNING] == [("suggest", "default")] * 2

    asked = load(write(tmp_path, text), environ={})
    assert [(asked.get(key), asked.origins[key]) for key in LEARNING] == [("write", "memfs.toml:2")] * 2

    chosen = load(write(tmp_path, f'{text}[learning]\nrules = "off"\n'), {"learning.patterns": "suggest"}, environ={})
    assert [chosen.get(key) for key in LEARNING] == ["suggest", "off"]


def test_a_memory_context_asks_for_what_is_learned(tmp_path: Path) -> None:
    """configuration/memory_context.yaml makes 'write' the default of learning.*, and is named as its origin (M4)."""
    context = tmp_path / "ContextMemory/configuration/memory_context.yaml"
    context.parent.mkdir(parents=True)
    context.write_text("metadata: {type: memory, name: shop}\n")
    config = load(tmp_path, environ={"MEMFS_LEARNING_RULES": "suggest"})
    assert (config.learning.patterns, config.learning.rules) == ("write", "suggest")
    assert config.origins["learning.patterns"] == "ContextMemory/configuration/memory_context.yaml"
