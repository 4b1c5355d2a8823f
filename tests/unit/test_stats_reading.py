import json

import pytest
from analysis_data import campaign

from tare.errors import TareError
from tare.measurements import read_measurements, read_pair, read_study


@pytest.fixture
def files(tmp_path):
    measurements, facts = campaign(repeats=2, rank_counts=(1,))
    measurements.to_csv(tmp_path / "measurements.csv", index=False)
    (tmp_path / "study.json").write_text(json.dumps(facts))
    return tmp_path / "measurements.csv", tmp_path / "study.json"


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_a_good_pair_of_files_is_read(files):
    measurements, facts = read_pair(*files)
    assert len(measurements) == 36
    assert len(facts["cells"]) == 18
    assert measurements["wall_s"].dtype == "float64"


def test_text_that_looks_like_absence_stays_text(tmp_path, files):
    edit(files[0], ",debian13,", ",NA,")
    assert read_measurements(files[0])["userland"][0] == "NA"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("wall_s", "wall", "no column 'wall_s'"),
        (",2.0,dac/gcc14", ",two,dac/gcc14", "nodes: row 2: 'two' is not a number"),
        (",2.0,s1,", ",1.0,s1,", None),
    ],
    ids=["missing column", "text for a number", "an arm twice in a round"],
)
def test_a_spoilt_table_is_refused_in_one_line(files, old, new, message):
    if message is None:
        text = files[0].read_text().splitlines()
        files[0].write_text("\n".join([*text, text[1]]) + "\n")
        message = "is there twice in round 1"
    else:
        edit(files[0], old, new)
    with pytest.raises(TareError, match=message) as caught:
        read_measurements(files[0])
    assert "\n" not in str(caught.value)


def test_a_measured_repeat_without_a_time_is_refused(files):
    lines = files[0].read_text().splitlines()
    columns = lines[0].split(",")
    values = lines[1].split(",")
    values[columns.index("wall_s")] = values[columns.index("value")] = ""
    files[0].write_text("\n".join([lines[0], ",".join(values), *lines[2:]]) + "\n")
    with pytest.raises(TareError, match="row 2: status ok needs a wall_s or a value above 0"):
        read_measurements(files[0])


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00broken", b'a,b\n"1'], ids=["empty", "binary", "open quote"])
def test_what_is_no_table_is_refused_in_one_line(tmp_path, content):
    path = tmp_path / "measurements.csv"
    path.write_bytes(content)
    with pytest.raises(TareError) as caught:
        read_measurements(path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(TareError, match=r"measurements\.csv: cannot be read: No such file"):
        read_measurements(tmp_path / "measurements.csv")
    with pytest.raises(TareError, match=r"study\.json: cannot be read"):
        read_study(tmp_path / "study.json")


@pytest.mark.parametrize("content", ["{", "[]", '{"cells": 3}'])
def test_what_is_no_study_is_refused(tmp_path, content):
    path = tmp_path / "study.json"
    path.write_text(content)
    with pytest.raises(TareError, match=r"study\.json"):
        read_study(path)


def test_files_that_contradict_each_other_are_refused(files):
    lines = files[0].read_text().splitlines()
    files[0].write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(TareError, match=r"says 2 measured, measurements\.csv has 1"):
        read_pair(*files)


def test_rows_of_an_unplanned_cell_are_refused(files):
    facts = json.loads(files[1].read_text())
    facts["cells"].pop()
    files[1].write_text(json.dumps(facts))
    with pytest.raises(TareError, match="is not a cell of"):
        read_pair(*files)
