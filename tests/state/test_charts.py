"""Pictures of what an agent did and of what the workspace weighs."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as Xml

import pytest

from memfs.errors import ExtraMissing
from memfs.model.insights import AgentPoint, Analysis
from memfs.state.charts import agent_chart, size_text, usage_chart

pytest.importorskip("matplotlib")
SVG = "{http://www.w3.org/2000/svg}"
AREAS = {"items": (1_200_000, None), "checkpoints": (160_000_000, 150_000_000), "archive": (20_000_000, 10**12)}


def point(iteration: int, feedback: str = "", **metrics: float) -> AgentPoint:
    """How an agent did in an iteration."""
    return AgentPoint(
        iteration=iteration, outputs=2, confidence=0.1 * iteration, cost=1.0, metrics=metrics, feedback=feedback
    )


def analysis(*points: AgentPoint, agent: str = "Evolution Agent") -> Analysis:
    """An analysis with these points."""
    return Analysis(agent=agent, iterations=tuple(one.iteration for one in points), points=points)


def words(svg: bytes) -> str:
    """The text in a picture."""
    return " | ".join("".join(one.itertext()) for one in Xml.fromstring(svg).iter(f"{SVG}text"))


def test_an_agents_chart_shows_metrics_confidence_cost_and_feedback() -> None:
    """Each metric is named, and so is each version of the feedback where it was first given (S11)."""
    told = words(agent_chart(analysis(point(1, novelty=0.5), point(2, "v-one", novelty=0.7), point(3, "v-one"))))
    for word in ("Evolution Agent: 6 outputs, iterations 1 to 3", "novelty", "Confidence", "Cost", "new feedback"):
        assert word in told
    assert told.count("v-one") == 1


def test_the_same_values_give_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """No date, no random names, and nothing of the user's own settings of matplotlib (S11)."""
    import matplotlib

    made = agent_chart(analysis(point(1, a=1.0)))
    assert b"<dc:date>" not in made
    for name, value in (
        ("font.size", 30.0),
        ("svg.fonttype", "path"),
        ("savefig.bbox", "tight"),
        ("lines.linewidth", 9),
    ):
        monkeypatch.setitem(matplotlib.rcParams, name, value)
    assert agent_chart(analysis(point(1, a=1.0))) == made
    assert matplotlib.rcParams["font.size"] == 30.0


@pytest.mark.parametrize("name", ["$x_2$ & <b>", "\x00\x1b[31m\u202ered", "研究 агент", "a" * 500, '"]]>--'])
def test_any_name_of_an_agent_or_metric_is_drawn_as_text(name: str) -> None:
    """Names are free text: none is a formula, markup, or a character that XML cannot hold (S11)."""
    told = words(agent_chart(analysis(point(1, **{name: 1.0}), agent=name)))
    assert name[:5].strip() in told or "\ufffd" in told
    assert "\u202e" not in told


def test_more_metrics_than_colours_are_counted() -> None:
    """The picture stays readable, and says what it leaves out (S11)."""
    told = words(agent_chart(analysis(point(1, **{f"m{n}": 1.0 for n in range(10)}))))
    assert "4 more not shown" in told


def test_metrics_of_other_magnitudes_have_a_panel_of_their_own() -> None:
    """A count in the thousands does not flatten a share below one (S11)."""
    alike = agent_chart(analysis(point(1, a=0.5, b=0.9), point(2, a=0.6, b=0.0)))
    apart = agent_chart(analysis(point(1, a=0.5, b=9000.0), point(2, a=0.6, b=8000.0)))
    panels = [svg.count(b'<g id="axes_') for svg in (alike, apart)]
    assert panels == [3, 4]


def test_nothing_to_show_is_said() -> None:
    """An agent without outputs and a workspace without iterations have a picture, too."""
    assert "no metrics" in words(agent_chart(analysis()))
    assert "no iterations" in words(usage_chart({}, {}))


def test_usage_shows_areas_quotas_and_growth() -> None:
    """Each area has its size and share of the quota; iterations have their sum and mean (S15, S16)."""
    told = words(usage_chart(AREAS, dict.fromkeys(range(1, 11), 10000000)))
    for word in ("160 MB of 150 MB (107%)", "20 MB of 1 TB (0%)", "1.2 MB", "100 MB, 10 MB each on average", "items"):
        assert word in told


def test_a_thousand_iterations_are_drawn_in_groups() -> None:
    """The number of bars is bounded, and the axis says for how many iterations each stands (S15)."""
    assert "a bar for each 3" in words(usage_chart(AREAS, dict.fromkeys(range(1, 1001), 1000)))


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ExtraMissing, match=r"gitmemfs\[plots\]"):
        usage_chart(AREAS, {})


@pytest.mark.parametrize(("size", "text"), [(0, "0 B"), (999, "999 B"), (1234, "1.23 kB"), (5 * 10**14, "500 TB")])
def test_sizes_are_readable(size: int, text: str) -> None:
    """Three digits and a unit."""
    assert size_text(size) == text
