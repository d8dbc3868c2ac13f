"""Draw an agent's metrics and the workspace's sizes as SVG.

The same values give the same bytes, whatever the user's settings of matplotlib are. Imported only when a picture is
asked for.
"""

from __future__ import annotations

import io
import threading
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from memfs.errors import ExtraMissing
from memfs.model.insights import AgentPoint, Analysis

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMS = ("svg", "png")
"""What a picture can be, as the endings of file names say it."""
_DOTS = 144
_DRAWING = threading.Lock()  # matplotlib's settings belong to the whole process
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")  # told apart by colour-blind readers, too
_MARKERS = ("o", "s", "^", "D", "v", "P")
_INK, _FAINT, _ALARM, _MARK = "#222222", "#8a8a8a", "#b00020", "#6a3d9a"
_SHORT_VERSION = 8
_MOST_METRICS = len(_COLOURS)
_FIRST = ("improvement", "diversity")
_MOST_PANELS = 3
_FLATTENS = 20.0
_LONGEST_NAME = 40
_MOST_BARS = 400
_WIDTH = 9.0
_UNITS = ("B", "kB", "MB", "GB", "TB")
_SETTINGS: Any = {  # its keys are a closed list of matplotlib's
    "svg.hashsalt": "memfs",
    "svg.fonttype": "none",  # text stays text: found by a search, read aloud, in letters the reader's fonts have
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": _FAINT,
    "axes.labelcolor": _INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "xtick.color": _INK,
    "ytick.color": _INK,
    "legend.frameon": False,
    "text.parse_math": False,  # a name with two dollars is no formula
}


# -- an agent -----------------------------------------------------------------------------------------------------
def agent_chart(analysis: Analysis, form: str = "svg") -> bytes:
    """An agent's metrics, confidence and cost over iterations, with a line where each feedback was first given.

    Args:
        form: one of ``FORMS``.

    Returns:
        The picture. Of more than six metrics, improvement, diversity and those of most iterations are
        shown, and the title says so. Metrics of
        quite other magnitudes stand in panels of their own.

    Raises:
        ExtraMissing: matplotlib is not installed.
    """
    points = sorted(analysis.points, key=lambda point: point.iteration)
    groups, left_out = _metric_groups(points)
    rows = len(groups) + 2
    with _drawing(rows, 2.5 * rows, sharex=True) as (figure, panels):
        figure.suptitle(_shown(f"{_name(analysis.agent)}: {_span(points)}"), x=0.02, ha="left", color=_INK)
        for axes, group in zip(panels, groups, strict=False):
            _draw_metrics(axes, points, group)
        panels[0].set_title("Metrics" + (f" ({left_out:,} more not shown)" if left_out else ""))
        _draw_confidence(panels[-2], points)
        _draw_cost(panels[-1], points)
        for axes in panels:
            _mark_feedback(axes, points)
            _count_whole(axes)
        _name_feedback(panels[0], points)
        panels[-1].set_xlabel("iteration")
        return _saved(figure, form, f"Performance of {_name(analysis.agent)}")


def _metric_groups(points: Sequence[AgentPoint]) -> tuple[list[Mapping[str, Mapping[int, float]]], int]:
    """Metrics with their values by iteration, apart where one would flatten another; and how many are left out."""
    series: dict[str, dict[int, float]] = {}
    for point in points:
        own = {"improvement": point.improvement, "diversity": point.diversity, **point.metrics}
        for name, value in own.items():
            if value is not None:
                series.setdefault(name, {})[point.iteration] = value
    chosen = sorted(series, key=lambda name: (name not in _FIRST, -len(series[name]), name))[:_MOST_METRICS]
    largest = {name: max(map(abs, series[name].values())) for name in chosen}
    groups: list[dict[str, Mapping[int, float]]] = [{}]
    limit = None
    for name in sorted(chosen, key=lambda name: largest[name]):
        if limit is not None and largest[name] > limit and len(groups) < _MOST_PANELS:
            groups.append({})
            limit = None
        limit = largest[name] * _FLATTENS if limit is None and largest[name] else limit
        groups[-1][name] = series[name]
    return [dict(sorted(group.items())) for group in groups], len(series) - len(chosen)


def _span(points: Sequence[AgentPoint]) -> str:
    if not points:
        return "no iterations"
    first, last = points[0].iteration, points[-1].iteration
    outputs = sum(point.outputs for point in points)
    where = f"iteration {first}" if first == last else f"iterations {first} to {last}"
    return f"{outputs:,} output{'s' * (outputs != 1)}, {where}"


def _draw_metrics(axes: Axes, points: Sequence[AgentPoint], group: Mapping[str, Mapping[int, float]]) -> None:
    numbers = [point.iteration for point in points]
    for look, (name, known) in enumerate(group.items()):
        values = [known.get(iteration, float("nan")) for iteration in numbers]
        axes.plot(numbers, values, color=_COLOURS[look], marker=_MARKERS[look], markersize=4, label=_name(name))
    if group:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0, fontsize=9)
    else:
        _say_nothing(axes, "no metrics")


def _draw_confidence(axes: Axes, points: Sequence[AgentPoint]) -> None:
    axes.set_title("Confidence (mean)")
    known = [point for point in points if point.confidence is not None]
    if not known:
        _say_nothing(axes, "no confidence scores")
        return
    values = [float("nan") if point.confidence is None else point.confidence for point in points]
    axes.plot([point.iteration for point in points], values, color=_COLOURS[0], marker="o", markersize=4)
    if all(0 <= value <= 1 for point in known if (value := point.confidence) is not None):
        axes.set_ylim(-0.03, 1.03)


def _draw_cost(axes: Axes, points: Sequence[AgentPoint]) -> None:
    axes.set_title("Cost (resources consumed)")
    if any(point.cost for point in points):
        axes.bar([point.iteration for point in points], [point.cost for point in points], color=_COLOURS[5], width=0.6)
    else:
        _say_nothing(axes, "no costs")


def _first_given(points: Sequence[AgentPoint]) -> list[tuple[int, str]]:
    """Each version of the feedback with the iteration that was given it first."""
    found: dict[str, int] = {}
    for point in points:
        if point.feedback:
            found.setdefault(point.feedback, point.iteration)
    return [(iteration, version) for version, iteration in found.items()]


def _mark_feedback(axes: Axes, points: Sequence[AgentPoint]) -> None:
    for iteration, _ in _first_given(points):
        axes.axvline(iteration, color=_MARK, linestyle=(0, (4, 3)), linewidth=1.3, zorder=0.6)


def _name_feedback(axes: Axes, points: Sequence[AgentPoint]) -> None:
    given = _first_given(points)
    for iteration, version in given:
        place = (iteration, 1.0)
        told = _shown(version)[:_SHORT_VERSION]
        across = axes.get_xaxis_transform()
        axes.annotate(told, place, (2, -9), across, "offset points", color=_MARK, fontsize=7.5, annotation_clip=True)
    if given:
        axes.text(1.01, 0.02, "┆ new feedback", transform=axes.transAxes, color=_MARK, fontsize=9)


# -- usage --------------------------------------------------------------------------------------------------------
def usage_chart(areas: Mapping[str, tuple[int, int | None]], growth: Mapping[int, int], form: str = "svg") -> bytes:
    """Bytes by area, with a line at the area's quota, and bytes by iteration with their sum.

    Args:
        areas: bytes and quota (None for none) by area, in the order in which they are shown.
        growth: bytes that each iteration takes, by its number.
        form: one of ``FORMS``.

    Returns:
        The picture. More than 400 iterations are shown in groups of equal size.

    Raises:
        ExtraMissing: matplotlib is not installed.
    """
    height = 3.6 + 0.32 * len(areas)
    with _drawing(2, height, heights=(max(len(areas), 3) * 0.32 + 0.4, 2.6)) as (figure, (storage, grown)):
        total = sum(size for size, _ in areas.values())
        figure.suptitle(_shown(f"Storage: {size_text(total)}"), x=0.02, ha="left", color=_INK)
        _draw_areas(storage, areas)
        _draw_growth(grown, growth)
        return _saved(figure, form, "Storage by area and by iteration")


def _draw_areas(axes: Axes, areas: Mapping[str, tuple[int, int | None]]) -> None:
    axes.set_title("By area" + (" (red line: quota)" if any(quota for _, quota in areas.values()) else ""))
    if not areas:
        _say_nothing(axes, "nothing stored")
        return
    sizes = [size for size, _ in areas.values()]
    widest = max(*sizes, 1)
    unit, scale = _unit(widest)
    places = range(len(areas))
    over = [quota is not None and size > quota for size, quota in areas.values()]
    axes.barh(
        list(places), [size / scale for size in sizes], color=[_ALARM if o else _COLOURS[0] for o in over], height=0.6
    )
    axes.set_yticks(list(places), [_name(name) for name in areas])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    lines = [quota if quota and quota <= 1.5 * widest else 0 for _, quota in areas.values()]  # those not far outside
    for place, (size, quota), line in zip(places, areas.values(), lines, strict=True):
        if line:
            axes.plot([line / scale] * 2, [place - 0.4, place + 0.4], color=_ALARM, linewidth=2)
        told = size_text(size) + (f" of {size_text(quota)} ({size / quota:.0%})" if quota else "")
        end = (max(size, line) / scale, place)
        axes.annotate(told, end, (5, 0), textcoords="offset points", va="center", fontsize=9, color=_INK)
    axes.set_xlim(0, 1.35 * max(widest, *lines) / scale)
    axes.set_xlabel(unit)


def _draw_growth(axes: Axes, growth: Mapping[int, int]) -> None:
    axes.set_title("By iteration")
    if not growth:
        _say_nothing(axes, "no iterations")
        return
    numbers, sizes, each = _grouped(sorted(growth.items()))
    unit, scale = _unit(max(*sizes, 1))
    axes.bar(
        numbers, [size / scale for size in sizes], width=each * (0.8 if len(sizes) <= 60 else 1.0), color=_COLOURS[0]
    )
    axes.set_ylabel(unit)
    axes.set_xlabel("iteration" if each == 1 else f"iteration (a bar for each {each:,})")
    _count_whole(axes)
    mean = sum(growth.values()) / len(growth)
    axes.axhline(mean * each / scale, color=_COLOURS[1], linewidth=1.2, linestyle=(0, (4, 3)))
    several = f", {size_text(round(mean))} each on average (dashed)" if len(growth) > 1 else ""
    axes.set_title(f"By iteration: {size_text(sum(growth.values()))}{several}")


def _grouped(growth: Sequence[tuple[int, int]]) -> tuple[list[float], list[int], int]:
    """Bars: their middles, their sizes, and how many iterations each stands for."""
    first, last = growth[0][0], growth[-1][0]
    each = max(-(-(last - first + 1) // _MOST_BARS), 1)
    sums: dict[int, int] = {}
    for number, size in growth:
        sums[(number - first) // each] = sums.get((number - first) // each, 0) + size
    return [first + group * each + (each - 1) / 2 for group in sums], list(sums.values()), each


def _unit(largest: float) -> tuple[str, float]:
    power = 0
    while largest >= 1000 and power < len(_UNITS) - 1:
        largest, power = largest / 1000, power + 1
    return _UNITS[power], 1000.0**power


def size_text(size: int) -> str:
    """Bytes as people read them."""
    unit, scale = _unit(size)
    return f"{size} B" if unit == "B" else f"{size / scale:.3g} {unit}"


# -- common to both -----------------------------------------------------------------------------------------------
@contextmanager
def _drawing(rows: int, height: float, sharex: bool = False, heights: Sequence[float] | None = None) -> Iterator[Any]:
    """A figure with axes below each other, under matplotlib's own settings and ours."""
    try:
        import matplotlib
        from matplotlib.figure import Figure  # large, and an extra
    except ImportError as error:
        raise ExtraMissing(
            "charts need the package matplotlib", field="plot", hint="pip install 'gitmemfs[plots]'"
        ) from error
    with _DRAWING, matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that the measuring font lacks; the reader's fonts draw them
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        yield figure, figure.subplots(rows, 1, sharex=sharex, height_ratios=heights)


def _saved(figure: Figure, form: str, title: str) -> bytes:
    out = io.BytesIO()
    about = {"Date": None, "Creator": "memfs"} if form == "svg" else {"Software": "memfs"}
    figure.savefig(
        out, format=form, dpi=_DOTS if form == "png" else "figure", metadata={**about, "Title": _shown(title)}
    )
    return out.getvalue()


def _count_whole(axes: Axes) -> None:
    """Iterations are counted in whole numbers."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(nbins=12, integer=True))


def _say_nothing(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=_FAINT)
    axes.set_yticks([])
    axes.grid(visible=False)


def _name(text: str) -> str:
    """A name, cut to what a picture has room for."""
    shown = " ".join(_shown(text).split())
    return shown if len(shown) <= _LONGEST_NAME else shown[: _LONGEST_NAME - 1] + "…"


def _shown(text: str) -> str:
    """The text without characters that control or hide, some of which no XML may hold."""
    return "".join("\ufffd" if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Cn", "Co") else one for one in text)
