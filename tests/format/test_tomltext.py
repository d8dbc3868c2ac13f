"""Changing one setting in the text of ``memfs.toml``."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfs.errors import SettingInvalid
from memfs.format.toml_text import parse, with_value

TEXTS = [
    "",
    "# nothing\n",
    '[recall]\nlimit = 3\n\n[index]\nengine = "sqlite"\n',
    '[semantic]\n# The model.\n#model = ""\n#endpoint = ""\n\n[served]\ndays = 3\n',
    "[semantic]\nendpoint = 'http://127.0.0.1:1/v1' # mine\n",
    "[semantic] # by meaning\n# none\n[served]\r\ndays = 3\r\n",
    '[mounts]\nsemantic = "../x"\n',
    '[a]\nb = """\n[semantic]\nmodel = "x"\n"""\n# end\n',
]


@pytest.mark.parametrize("text", TEXTS[:-1])
def test_what_is_added_is_taken_out_again_to_the_byte(text: str) -> None:
    """Comments, line ends and other settings stay as they are (D3)."""
    changed = with_value(text, "semantic", "model", 'a "b" \\ ü')
    assert tomllib.loads(changed)["semantic"]["model"] == 'a "b" \\ ü'
    assert set(text.splitlines()) <= set(changed.splitlines())
    assert with_value(changed, "semantic", "model", None) == text


def test_a_value_is_replaced_in_place() -> None:
    """The comment beside it stays, in whichever quotes the value was (D3)."""
    for text in ('[semantic]\nmodel = "x"  # why\n', "[semantic]\n model='x'\t# why\n", 'semantic.model = "x" # why\n'):
        changed = with_value(text, "semantic", "model", "minilm")
        assert tomllib.loads(changed) == {"semantic": {"model": "minilm"}}
        assert changed.endswith("# why\n")
        assert with_value(changed, "semantic", "model", None).count("model") == 0


@pytest.mark.parametrize(
    "text",
    [
        TEXTS[-1],
        'semantic = {model = "x"}\n',
        '[semantic]\nmodel = """\nx"""\n',
        "[\"semantic\"]\n\"model\" = '''x'''\n",
    ],
)
def test_a_value_is_changed_however_it_is_written(text: str) -> None:
    """Inline tables, texts of several lines and quoted names are understood, and nothing else changes (D3)."""
    changed = tomllib.loads(with_value(text, "semantic", "model", "minilm"))
    assert changed == {**tomllib.loads(text), "semantic": {"model": "minilm"}}


def test_a_file_that_is_not_toml_is_left_alone() -> None:
    """What is wrong is named with its line (D3)."""
    with pytest.raises(SettingInvalid) as raised:
        with_value("[semantic]\nmodel = \n", "semantic", "model", "minilm")
    assert raised.value.line == 2


@pytest.mark.parametrize("value", [True, 7, 0.25, ("a", "b"), ""])
@pytest.mark.parametrize(
    "text",
    ["", "[memory.episodic]\n# why\nvalue = 3 # mine\n", '[memory.episodic]\nvalue = ["x"]\n', "[memory]\na = 1\n"],
)
def test_values_of_every_sort_are_written_in_tables_of_tables(text: str, value: object) -> None:
    """Numbers, switches and lists take the place of what was there, comments stay (D3)."""
    changed = with_value(text, "memory.episodic", "value", value)
    read = tomllib.loads(changed)["memory"]["episodic"]["value"]
    assert read == (list(value) if isinstance(value, tuple) else value)
    assert changed.count("#") == text.count("#")
    assert "value" not in with_value(changed, "memory.episodic", "value", None)


def test_what_is_not_there_is_not_taken_out() -> None:
    """The text comes back as it is (D3)."""
    assert with_value("[recall]\nlimit = 3\n", "semantic", "model", None) == "[recall]\nlimit = 3\n"


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40))
def test_any_text_is_written_so_that_it_is_read_again(value: str) -> None:
    """Whatever a model is called (D3)."""
    assert tomllib.loads(with_value("[served]\ndays = 3\n", "semantic", "model", value))["semantic"]["model"] == value


_LINES = (
    "[a]", "[b]", "[a.b]", "[[a]]", "[a ]", "[]", "[", " [c]", "[d] # x", "x = 1", "x = 0", "x = 01", "x=1",
    "x  = 1", "\tx = 1", "x = 1\r", "x = -1", "x = 1.5", "x = 1_0", "x = \u00b2", "y = true", "y = True",
    "true = false", 'z = "t"', 'z = ""', 'z = "', 'z = """', 'z = "\\n"', 'z = "t" # c', 'z = "#"',
    'z = "\u200b"', 'z = "a\tb"', "z = 't'", "a = 1", 'z = "\u00e4"', '"a" = 1', "x-y = 1", "m = []",
    "\u00e9 = 1", "= 1", "x =", "# c", "", "  # \u00e9", "# \x01",
)  # fmt: skip


@given(st.lists(st.sampled_from(_LINES), max_size=5))
def test_a_file_of_plain_lines_is_read_as_any_other(lines: list[str]) -> None:
    """What is read without the whole parser is what that would have read, and nothing else is accepted."""
    text = "\n".join(lines)
    try:
        expected = tomllib.loads(text)
    except ValueError:
        with pytest.raises(SettingInvalid):
            parse(text)
    else:
        assert repr(parse(text)) == repr(expected)
