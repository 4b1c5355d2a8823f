import json
import re
from functools import cache
from pathlib import Path

import pytest
from analysis_data import frame, row, study, tour
from matplotlib.figure import Figure
from test_stats import one_block

from tare import figures
from tare.figures import _style


@cache
def drawn(name):
    return figures.draw(name, *tour())


@pytest.fixture(scope="module")
def data():
    return tour()


AWKWARD = {
    "one repeat": one_block({"native": [1.0], "docker-host": [1.1], "native-aa": [1.0]}),
    "zero spread": one_block({"native": [1.0] * 3, "docker-host": [1.0] * 3, "native-aa": [1.0] * 3}),
    "an arm without a time": one_block({"native": [1.0, 1.1], "docker-host": [None, None], "singularity": [1.2, 1.3]}),
    "native without a time": one_block({"native": [None, None], "docker-host": [1.0, 1.1]}),
    "nothing measured": one_block({"native": [None], "docker-host": [None]}),
    "nothing planned": (frame([]), study([])),
}


@pytest.mark.parametrize("name", figures.names())
def test_every_figure_is_drawn_in_both_formats(name):
    figure = drawn(name)
    assert figures.image(figure, ".png").startswith(b"\x89PNG")
    assert b"<svg" in figures.image(figure, ".svg")


@pytest.mark.parametrize("name", figures.names())
def test_axes_with_numbers_say_what_and_in_which_unit(name):
    labels = [axes.get_ylabel() for axes in drawn(name).axes if axes.axison]
    assert any(re.search(r"\[.+\]", label) for label in labels)


@pytest.mark.parametrize("name", figures.names())
@pytest.mark.parametrize("case", AWKWARD)
def test_a_figure_of_awkward_data_is_still_a_figure(name, case):
    assert isinstance(figures.draw(name, *AWKWARD[case]), Figure)


@pytest.mark.parametrize("name", figures.names())
def test_the_same_data_give_the_same_bytes(name):
    first, second = (figures.image(figures.draw(name, *AWKWARD["an arm without a time"]), ".svg") for _ in range(2))
    assert first == second


def test_every_repeat_is_a_dot_and_a_failed_one_is_not():
    measurements, facts = one_block({"native": [1.0, 1.1, 1.2], "docker-host": [1.3, None, 1.5]})
    axes = figures.draw("times_box", measurements, facts).axes[0]
    dots = [line for line in axes.lines if line.get_marker() == "."]
    assert sorted(float(y) for line in dots for y in line.get_ydata()) == [1.0, 1.1, 1.2, 1.3, 1.5]


def test_a_dot_stands_at_its_median_overhead():
    measurements, facts = one_block({"native": [1.0, 1.0, 1.0], "docker-host": [1.1, 1.2, 1.3]})
    axes = figures.draw("overhead_ranks", measurements, facts).axes[0]
    (dots,) = [line for line in axes.lines if line.get_label() == "docker-host"]
    assert [float(y) for y in dots.get_ydata()] == pytest.approx([20.0])


def test_backends_differ_in_colour_and_in_marker():
    found = _style.looks([*_style.COLOURS, "podman-host", "charliecloud"])
    assert len({colour for colour, _ in found.values()}) == len(found)
    assert len({marker for _, marker in found.values()}) == len(found)


def test_a_new_figure_is_a_new_file(tmp_path, monkeypatch, data):
    (tmp_path / "blank.py").write_text(
        '"""Nothing to see."""\nfrom tare.figures._style import empty\n\n'
        "def draw(measurements, study):\n    return empty('nothing')\n"
    )
    monkeypatch.setattr(figures, "__path__", [*figures.__path__, str(tmp_path)])
    assert "blank" in figures.names()
    assert figures.caption("blank") == "Nothing to see."
    assert figures.draw("blank", *data).texts[0].get_text() == "nothing"


def test_the_command_writes_both_formats(tmp_path, data):
    measurements, facts = data
    measurements.to_csv(tmp_path / "m.csv", index=False)
    (tmp_path / "s.json").write_text(json.dumps({key: value for key, value in facts.items() if key != "metrics"}))
    out = [str(tmp_path / f"times_box{suffix}") for suffix in figures.FORMATS]
    argv = ["times_box", "--measurements", str(tmp_path / "m.csv"), "--study", str(tmp_path / "s.json")]
    assert figures.main([*argv, "-o", out[0], "-o", out[1]]) == 0
    assert all(Path(path).stat().st_size > 1000 for path in out)


def test_an_unknown_figure_is_one_line(tmp_path, capsys):
    argv = ["times_bx", "--measurements", "m.csv", "--study", "s.json", "-o", "x.svg"]
    assert figures.main(argv) == 1
    assert capsys.readouterr().err.startswith("tare: figure 'times_bx': there is no such figure; did you mean 'times_box'?")


def test_a_figure_has_a_dot_for_each_row_only_once():
    rows = [row("dac/gcc14/O2/n2r1", "native", 1, 1, 1.0)]
    assert figures.draw("times_box", frame(rows), study([])).texts[0].get_text() == "no measured repeat"
