import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from analysis_data import campaign, frame, row, study

from tare import tables
from tare.rounding import ABSENT, duration, half_up, overhead_percent, significant

SOURCE = Path(tables.__file__).parents[2]


@pytest.fixture(scope="module")
def data():
    return campaign()


@pytest.fixture
def files(tmp_path, data):
    measurements, facts = data
    measurements.to_csv(tmp_path / "measurements.csv", index=False)
    (tmp_path / "study.json").write_text(json.dumps(facts))
    return ["--measurements", str(tmp_path / "measurements.csv"), "--study", str(tmp_path / "study.json")]


def test_every_file_is_a_table():
    files = {path.stem for path in Path(tables.__file__).parent.glob("*.py")} - {"__init__", "__main__"}
    assert {name for name in files if not name.startswith("_")} == set(tables.names())
    assert {"overhead", "speedup"} <= set(tables.names())


def test_a_new_table_is_a_new_file(tmp_path, monkeypatch, data):
    (tmp_path / "repeats.py").write_text(
        '"""How many repeats there are."""\nimport pandas as pd\n\n'
        "def build(measurements, study):\n    return pd.DataFrame({'n': [len(measurements)]})\n"
    )
    monkeypatch.setattr(tables, "__path__", [*tables.__path__, str(tmp_path)])
    assert "repeats" in tables.names()
    table = tables.build("repeats", *data)
    assert tables.text("repeats", table, ".md") == "How many repeats there are.\n\n| n |\n| --- |\n| 270 |\n"


@pytest.mark.parametrize("name", tables.names())
@pytest.mark.parametrize("suffix", tables.FORMATS)
def test_every_table_can_be_written_in_every_format(name, suffix, data):
    text = tables.text(name, tables.build(name, *data), suffix)
    assert text.endswith("\n")
    assert "nan" not in text.lower().split()


def test_the_command_writes_whole_files(files, tmp_path):
    out = [tmp_path / "t" / f"speedup{suffix}" for suffix in tables.FORMATS]
    assert tables.main(["speedup", *files, *(word for path in out for word in ("-o", str(path)))]) == 0
    assert pd.read_csv(out[0])["Sf"].notna().all()
    assert sorted(path.name for path in out[0].parent.iterdir()) == ["speedup.csv", "speedup.md", "speedup.tex"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["overhed", "-o", "x.csv"], "table 'overhed': there is no such table; did you mean 'overhead'?"),
        (["overhead", "-o", "x.xls"], "x.xls: unknown format '.xls'; allowed: .csv, .md, .tex"),
    ],
)
def test_a_users_mistake_is_one_line(files, argv, message, capsys):
    assert tables.main([argv[0], *files, *argv[1:]]) == 1
    said = capsys.readouterr().err
    assert said.startswith("tare: ")
    assert message in said
    assert said.count("\n") == 1


def test_the_module_runs_as_a_program(tmp_path):
    argv = [sys.executable, "-m", "tare.tables", "overhead", "--measurements", "no.csv", "--study", "no.json", "-o", "x.csv"]
    done = subprocess.run(argv, cwd=tmp_path, env={"PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "tare: no.csv: cannot be read: No such file or directory; check the name\n"


def test_speedup_and_sf_are_as_defined(data):
    measurements, _ = data
    table = tables.build("speedup", *data).set_index(["metric", "app", "backend", "ranks"])
    median = measurements.groupby(["app", "backend", "ranks"])["wall_s"].median()
    container = median["dac", "docker-overlay", 1] / median["dac", "docker-overlay", 4]
    host = median["dac", "native", 1] / median["dac", "native", 4]
    found = table.loc[("wall_s", "dac", "docker-overlay", 4)]
    assert found["speedup"] == pytest.approx(container)
    assert found["efficiency"] == pytest.approx(container / 4)
    assert found["Sf"] == pytest.approx(container / host)
    assert "native-aa" not in table.index.get_level_values("backend")


def test_speedup_without_one_rank_is_absent(data):
    measurements, facts = data
    table = tables.build("speedup", measurements[measurements["ranks"] > 1], facts)
    assert table["speedup"].isna().all()
    assert "speedup" not in tables.text("speedup", table, ".md").splitlines()[2]


def test_one_rank_on_one_node_serves_every_node_count(data):
    measurements, facts = data
    spread = measurements.assign(nodes=measurements["ranks"])
    table = tables.build("speedup", spread, facts)
    assert table["speedup"].notna().all()


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (2.675, 2, "2.68"),  # its binary value lies below the tie
        (0.125, 2, "0.13"),  # Python's round gives 0.12
        (-0.125, 2, "-0.13"),
        (137.005, 2, "137.01"),
        (11.2925, 3, "11.293"),
        ((0.1 + 0.2) / 2, 2, "0.15"),
        ((10.22 + 10.23) / 2, 2, "10.23"),
        (None, 2, ABSENT),
        (float("nan"), 2, ABSENT),
        (float("inf"), 2, "∞"),
        (1234567, 0, "1234567"),
    ],
)
def test_rounding_is_half_up(value, digits, text):
    assert half_up(value, digits) == text


@pytest.mark.parametrize(("ratio", "text"), [(1.032, "+3.2"), (0.9, "−10.0"), (1.0001, "0.0"), (0.9999, "0.0"), (None, "—")])
def test_an_overhead_has_its_sign(ratio, text):
    assert overhead_percent(ratio) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(9.04e-6, "9.04 µs"), (0.0123, "12.3 ms"), (1.5, "1.50 s"), (600.4, "600 s"), (0, "0 s"), (3e-10, "0.300 ns"), (None, "—")],
)
def test_a_time_has_a_unit_that_suits_it(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(("value", "text"), [(1234.5, "1235"), (0.0012345, "0.00123"), (0, "0"), (None, "—")])
def test_significant_digits(value, text):
    assert significant(value) == text


def test_latex_is_escaped(data):
    text = tables.text("overhead", tables.build("overhead", *data), ".tex")
    assert r"O3\_native" in text
    assert r"ratio\_of\_medians" in text


def scenarios(column, levels):
    """Build native, and one container backend whose time grows by a tenth with each level."""
    rows = [row("dac/gcc14/O2/n2r4", "native", 4, 1, 2.0)]
    times = [(level, 2.0 * (1.1 + 0.1 * place)) for place, level in enumerate(levels)]
    names = {level: f"+{level}" if column == "affinity" else f"+{level}ctn" if level != "1" else "" for level in levels}
    rows += [row("dac/gcc14/O2/n2r4", f"docker-overlay{names[level]}+mtu8950", 4, 1, time) for level, time in times]
    return frame(rows).assign(**{column: [None, *levels]})


@pytest.mark.parametrize(
    ("name", "column", "levels"),
    [("granularity", "containers_per_node", ["1", "2", "32"]), ("affinity", "affinity", ["any", "cpumem", "cpumempin"])],
)
def test_levels_are_compared_with_the_first_and_with_native(name, column, levels):
    table = tables.build(name, scenarios(column, levels), study([]))
    assert set(table["backend"]) == {"docker-overlay+mtu8950"}
    assert table["ratio_to_first"].tolist() == pytest.approx([1.0, 1.2 / 1.1, 1.3 / 1.1])
    assert table["ratio_to_native"].tolist() == pytest.approx([1.1, 1.2, 1.3])


def test_containers_per_node_have_the_papers_scenario_names():
    table = tables.build("granularity", scenarios("containers_per_node", ["1", "3", "32"]), study([]))
    assert table["scenario"].tolist() == ["SCE1", "", "SCE6"]


@pytest.mark.parametrize("name", ["granularity", "affinity"])
def test_a_study_without_the_factor_has_no_rows(name, data):
    assert tables.build(name, *data).empty
