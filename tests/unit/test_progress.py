"""`tare run`: the line that says how much is measured and how long the rest will take."""

from pathlib import Path

import pytest

from tare.progress import configuration, progress_line


@pytest.mark.parametrize(
    ("done", "at_start", "planned", "elapsed_s", "line"),
    [
        (0, 0, 60, 0.0, "tare: 0 of 60 launches"),
        (10, 0, 60, 10.0, "tare: 10 of 60 launches, about 50 s left"),
        (10, 0, 200, 10.0, "tare: 10 of 200 launches, about 3 min left"),
        (40, 40, 60, 20.0, "tare: 40 of 60 launches"),
        (50, 40, 60, 20.0, "tare: 50 of 60 launches, about 20 s left"),
        (62, 40, 60, 20.0, "tare: 62 of 60 launches, about 0 s left"),
    ],
    ids=["nothing-yet", "seconds", "minutes", "resumed-nothing-yet", "resumed", "more-than-planned"],
)
def test_the_rest_takes_as_long_as_the_pace_since_the_start_says(
    done: int, at_start: int, planned: int, elapsed_s: float, line: str
) -> None:
    assert progress_line(done, at_start, planned, elapsed_s) == line


def test_the_config_is_read_from_snakemakes_own_arguments_keys_over_files(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text("name: one\nrepeats: 2\n")
    arguments = ["-n", "--configfile", str(path), "-k", "--config", "repeats=8", "ranks=[1, 2]"]
    assert configuration(arguments) == {"name": "one", "repeats": 8, "ranks": [1, 2]}
    assert configuration(["-n", "--cores", "2"]) == {}
