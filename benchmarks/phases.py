"""Phases: where the time of one question goes, cold and by a resident, as milliseconds and as a picture.

A program that is the command, with a clock around some of its functions. What one function calls of another is counted
once, for the inner one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from xml.sax.saxutils import escape

from memfs.doors.resident.place import answering

TIMED: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "memfs.workspace": [("", "open_workspace", "open")],
    "memfs.store.index_sync": [("IndexSync", "refresh", "files")],
    "memfs.recall.recaller": [("Recaller", "search", "search")],
    "memfs.doors.resident.client": [("ChildConnection", "to", "greeting"), ("", "_run_in_child", "child")],
    "memfs.doors.resident.answer": [("", "answer", "become"), ("", "_run", "command"), ("", "_opener", "opener")],
}
"""By module the functions with a clock around them: their class, "" for none, their name, and the phase they are."""
_PROGRAM = r"""
import sys, time
clock = time.monotonic_ns
first = since = clock()
import _frozen_importlib, os
spent, stack, wrapped = {}, ["command"], set()
table = TIMED

def charge():
    global since
    now = clock()
    spent[stack[-1]] = spent.get(stack[-1], 0) + now - since
    since = now

def within(name, function):
    if name == "opener":
        return lambda *given: within("open", function(*given))

    def call(*given, **named):
        global first, since
        if name == "become":
            first = since = clock()
            spent.clear()
        charge()
        stack.append(name)
        try:
            return function(*given, **named)
        finally:
            charge()
            stack.pop()
            if stack[-1] == "become" and name == "command":
                note(".child")  # once its client has the exit code, it is ended
    return call

def note(name):
    place = os.environ["BENCH_PHASES"] + name
    with open(place + ".new", "w") as file:
        file.write(repr([first, clock(), spent]).replace("'", '"'))
    os.rename(place + ".new", place)

def load(name, rest, find=_frozen_importlib._find_and_load):
    charge()
    stack.append("modules")
    try:
        found = find(name, rest)
    finally:
        charge()
        stack.pop()
    for one in [one for one in table if one in sys.modules and one not in wrapped]:
        module = sys.modules[one]
        if all(hasattr(module, of or attribute) for of, attribute, _ in table[one]):
            wrapped.add(one)
            for of, attribute, phase in table[one]:
                owner = getattr(module, of) if of else module
                own = vars(owner)[attribute]
                timed = within(phase, getattr(own, "__func__", own))
                setattr(owner, attribute, classmethod(timed) if isinstance(own, classmethod) else timed)
    return found

def end(code, leave=os._exit):
    charge()
    if "become" not in spent:
        note("")
    leave(code)

_frozen_importlib._find_and_load, os._exit = load, end
sys.argv[0] = "memfs"
from memfs.__main__ import main
try:
    main()
except SystemExit as ended:
    end(ended.code)
""".replace("TIMED", repr(TIMED))
PHASES = {
    "interpreter": "Python starts",
    "modules": "modules of the command are loaded",
    "greeting": "the resident is found, sees which files changed, forks",
    "become": "its child becomes the command",
    "open": "the workspace is opened",
    "files": "files are compared",
    "search": "the index is asked, hits are read and ranked",
    "command": "the line is read, the answer printed",
    "handing": "streams and exit code are handed over",
    "end": "the process ends",
}
"""What is distinguished, in the order of the picture."""
_PATIENCE = 10.0
_COLOURS = ("9aa5b1", "4f83cc", "e0a030", "c2703d", "9d7fd1", "3a9d6e", "c94f6d", "5aa9b8", "b08968", "c3cad2")
Taken = Mapping[str, float]


class Serving:
    """A resident whose children tell their phases, while the block runs."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        env = {**os.environ, "BENCH_PHASES": _place(self._folder, "resident")}
        command = [sys.executable, "-c", _PROGRAM, "serve"]
        self._process = subprocess.Popen(command, cwd=self._folder, env=env, stderr=subprocess.DEVNULL)
        end = time.monotonic() + _PATIENCE
        while not answering(Path(self._folder)) and time.monotonic() < end:
            time.sleep(0.1)

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()


def _place(folder: str, name: str) -> str:
    return str(Path(folder).parent / f"phases-{name}")


def taken(folder: str, words: Sequence[str], switch: str) -> Taken:
    """Milliseconds of one command in each phase.

    Args:
        switch: ``off``, or for how many milliseconds the resident of a ``Serving`` block is waited for.
    """
    place = Path(_place(folder, "command"))
    child = Path(f"{place}.child")
    child.unlink(missing_ok=True)
    env = {**os.environ, "MEMFS_RESIDENT": switch, "BENCH_PHASES": str(place)}
    began = time.monotonic_ns()
    command = [sys.executable, "-c", _PROGRAM, *words]
    subprocess.run(command, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    ended = time.monotonic_ns()
    first, last, spent = json.loads(place.read_text())
    found = {**spent, "interpreter": first - began, "end": ended - last}
    if switch != "off":
        end = time.monotonic() + _PATIENCE
        while not child.exists() and time.monotonic() < end:
            time.sleep(0.01)  # it goes on for a moment
        begun, done, inner = json.loads(child.read_text())
        handing = found.pop("child") - (done - begun)
        for name, duration in inner.items():
            found[name] = found.get(name, 0) + duration
        # The child greets before it is asked: so long the client and it are at work side by side.
        found["handing"] = max(handing, 0)
        found["greeting"] += min(handing, 0)
    return {name: duration / 1e6 for name, duration in found.items()}


def medians(rows: Sequence[Taken]) -> Taken:
    """The median of each phase, in the order of the picture; of whole runs, they add up only about."""
    return {name: median(row.get(name, 0.0) for row in rows) for name in PHASES}


def picture(bars: Mapping[str, Taken], title: str) -> str:
    """An SVG with a bar for each of some runs, in one scale, over a table of their phases.

    It has a ground of its own, and another one where dark is preferred: it can be read on any page.
    """
    longest = max(sum(taken.values()) for taken in bars.values())
    scale = _WIDTH / longest
    shown = [name for name in PHASES if any(taken[name] >= _LEAST for taken in bars.values())]
    height = 64 + 62 * len(bars) + 16 + 24 * len(shown) + 20
    lines = [
        _HEAD.format(width=_WIDTH + 48, height=height),
        f"<title>{escape(title)}</title>",
        f"<style>{_LIGHT} @media (prefers-color-scheme:dark){{{_DARK}}}</style>",
        f'<rect class="ground" width="{_WIDTH + 48}" height="{height}" rx="6"/>',
        _text(24, 34, title, "font-weight='bold'"),
    ]
    top = 64
    for name, taken in bars.items():
        lines.append(_text(24, top + 6, f"{name}: {sum(taken.values()):.0f} ms"))
        lines += _bar(taken, top + 14, scale)
        top += 62
    columns = [_WIDTH + 24 - 120 * number for number in reversed(range(len(bars)))]
    top += 16
    for column, name in zip(columns, bars, strict=True):
        lines.append(_text(column, top, name, "text-anchor='end'"))
    for name in shown:
        top += 24
        lines.append(f'<line class="rule" x1="24" x2="{_WIDTH + 24}" y1="{top - 17}" y2="{top - 17}"/>')
        lines.append(f'<rect x="24" y="{top - 12}" width="14" height="14" rx="2" fill="#{_colour(name)}"/>')
        lines.append(_text(48, top, PHASES[name]))
        for column, taken in zip(columns, bars.values(), strict=True):
            lines.append(_text(column, top, f"{taken[name]:.1f}" if taken[name] else "–", "text-anchor='end'"))
    return "\n".join([*lines, "</svg>", ""])


_WIDTH, _LEAST = 860, 0.1
_HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"
  font-family="DejaVu Sans, Verdana, sans-serif" font-size="14">"""
_LIGHT = ".ground{fill:#fff} .text{fill:#1f2328} .rule{stroke:#d0d7de}"
_DARK = ".ground{fill:#0d1117} .text{fill:#e6edf3} .rule{stroke:#3d444d}"


def _bar(taken: Taken, top: int, scale: float) -> Iterator[str]:
    left = 24.0
    for name, duration in taken.items():
        width = duration * scale
        yield (
            f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="30" fill="#{_colour(name)}">'
            f"<title>{escape(PHASES[name])}: {duration:.1f} ms</title></rect>"
        )
        if width > 30:
            label = f"{duration:.0f}"
            yield f'<text x="{left + width / 2:.1f}" y="{top + 20}" text-anchor="middle" fill="#111">{label}</text>'
        left += width


def _colour(name: str) -> str:
    return _COLOURS[list(PHASES).index(name)]


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text class="text" x="{x:g}" y="{y:g}" {more}>{escape(text)}</text>'
