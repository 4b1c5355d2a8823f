"""The published tables, held cell by cell against what the analysis makes of the published raw data."""

import json

import numpy as np
import pandas as pd
import pytest

from tare import importing, tables
from tare.errors import TareError
from tare.importing import imported, load
from tare.measurements import read_pair
from tare.verdicts import judged
from tare.yamlio import ROOT

STUDIES = ROOT / "config" / "studies"
PRINTED = ROOT / "data" / "published" / "kononowicz2022" / "tables"
SLIPS = {
    ("table02", "masterslave O3_native native 128", "median_s"),
    *(("table08", f"{ranks} masterslave", "Sf") for ranks in (1, 2, 4, 8, 16, 32, 64, 128, 256)),
    ("table10", "native median", "latency"),
}


def replayed(name, folder):
    paths = [folder / file for file in ("measurements.csv", "metrics.csv", "study.json")]
    words = [
        word for flag, path in zip(("measurements", "metrics", "study"), paths, strict=True) for word in (f"--{flag}", str(path))
    ]
    assert importing.main([str(STUDIES / f"{name}.yaml"), *words]) == 0
    return read_pair(paths[0], paths[2])


@pytest.fixture(scope="module")
def kononowicz(tmp_path_factory):
    return replayed("replay-kononowicz2022", tmp_path_factory.mktemp("kononowicz"))


@pytest.fixture(scope="module")
def alles(tmp_path_factory):
    return replayed("replay-alles2018", tmp_path_factory.mktemp("alles"))


@pytest.fixture(scope="module")
def audit(kononowicz):
    return tables.build("audit", *kononowicz)


def test_every_printed_number_is_audited(audit):
    printed = sum(pd.read_csv(path).shape[0] for path in PRINTED.glob("*.csv"))
    extra = 3 * pd.read_csv(PRINTED / "table08.csv").shape[0] + pd.read_csv(PRINTED / "table09.csv").shape[0]
    assert len(audit) == printed + extra == 300


def test_every_printed_number_is_reproduced_but_the_listed_slips(audit):
    wrong = audit[audit["status"] != "match"]
    assert set(zip(wrong["table"], wrong["key"], wrong["column"], strict=True)) == SLIPS
    assert set(wrong["status"]) == {"known slip"}


def test_a_mismatch_says_which_rule_gives_the_printed_number(audit):
    rules = audit.set_index(["table", "key", "column"])["other_rule"]
    assert rules["table02", "masterslave O3_native native 128", "median_s"] == "rounded up"
    assert rules["table10", "native median", "latency"] == "mean"
    assert all("ratio of times, container / native" in rules["table08", f"{n} masterslave", "Sf"] for n in (1, 2, 64, 256))


def test_a_forged_number_is_a_mismatch(kononowicz, tmp_path, monkeypatch):
    measurements, study = kononowicz
    (tmp_path / "table07.csv").write_text("app,backend,ranks,speedup\ndac,native,64,54.70\ndac,native,512,54.69\n")
    config = study["study"] | {"printed": {**study["study"]["printed"], "path": str(tmp_path)}}
    found = tables.build("audit", measurements, study | {"study": config})
    assert found["status"].tolist() == ["MISMATCH", "no data"]
    assert found["computed"].iloc[0] == "54.69"


def test_a_printed_table_of_an_unknown_kind_is_refused(kononowicz, tmp_path):
    measurements, study = kononowicz
    (tmp_path / "table99.csv").write_text("colour\nblue\n")
    config = study["study"] | {"printed": {"path": str(tmp_path)}}
    with pytest.raises(TareError, match=r"table99\.csv: unknown kind of table: found colour"):
        tables.build("audit", measurements, study | {"study": config})


def test_another_app_is_audited_by_the_same_rules(kononowicz, tmp_path):
    measurements, study = kononowicz
    other = measurements[measurements["app"] == "dac"].assign(app="spmd")
    other["block"] = other["block"].str.replace("dac", "spmd")
    cells = [
        cell | {"app": "spmd", "block": cell["block"].replace("dac", "spmd")} for cell in study["cells"] if cell["app"] == "dac"
    ]
    for name in ("table01", "table04", "table05", "table06", "table07", "table08", "table09"):
        table = pd.read_csv(PRINTED / f"{name}.csv", dtype=str)
        table[table["app"] == "dac"].assign(app="spmd").to_csv(tmp_path / f"{name}.csv", index=False)
    config = study["study"] | {"printed": {**study["study"]["printed"], "path": str(tmp_path)}}
    both = pd.concat([measurements, other], ignore_index=True)
    found = tables.build("audit", both, study | {"study": config, "cells": study["cells"] + cells})
    assert set(found["status"]) == {"match"}
    assert len(found) > 100


@pytest.mark.parametrize("name", tables.names())
@pytest.mark.parametrize("part", ["one toolchain", "no single rank", "two repeats", "native only", "one flag set"])
def test_published_data_with_holes_still_give_every_table(kononowicz, name, part):
    measurements, study = kononowicz
    keep = (
        {
            "one toolchain": measurements["toolchain"] == "v9",
            "no single rank": measurements["ranks"] > 1,
            "two repeats": measurements["rep"] <= 2,
            "native only": measurements["backend"] == "native",
            "one flag set": measurements["flags"] == "O2",
        }[part]
        & (measurements["app"] == "dac")
        & (measurements["ranks"] <= 8)
    )
    rows = measurements[keep]
    kept = set(zip(rows["block"], rows["backend"], strict=True))
    cells = [cell for cell in study["cells"] if (cell["block"], cell["backend"]) in kept]
    assert tables.text(name, tables.build(name, rows, study | {"cells": cells}), ".md")


def test_alles_overheads_are_as_printed(alles):
    table = tables.build("methods", *alles)
    means = table[table["method"] == "alles2018"].set_index(["backend", "ranks"])
    assert means.loc[("docker", 16), "overhead_percent"] == pytest.approx(7.93, abs=0.005)
    assert means.loc[("singularity", 16), "overhead_percent"] == pytest.approx(9.35, abs=0.005)
    native = [means.loc[("docker", ranks), "native"] for ranks in (1, 4, 8, 16)]
    assert [f"{value:.3g}" for value in native] == ["85.6", "21.7", "11", "5.63"]


def test_alles_interval_is_three_standard_errors(alles):
    measurements, _ = alles
    table = tables.build("methods", *alles)
    found = table[(table["method"] == "alles2018") & (table["backend"] == "docker") & (table["ranks"] == 16)].iloc[0]
    values = measurements[(measurements["backend"] == "docker") & (measurements["ranks"] == 16)]["wall_s"]
    assert found["half_width"] == pytest.approx(3 * np.std(values, ddof=1) / np.sqrt(30))


def test_alles_slowdown_at_16_ranks_holds_under_this_projects_method(alles):
    table = judged(*alles)
    at16 = table[(table["ranks"] == 16) & (table["metric"] == "wall_s")].set_index("backend")
    assert set(at16["verdict"]) == {"slower"}
    assert (at16["low"] > 1.05).all()


def test_numbers_of_more_than_one_kind_stand_in_metrics(kononowicz):
    _, study = kononowicz
    assert len(study["metrics"]) == 3640
    assert study["metrics"]["metric"].nunique() == 26


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": {"wall_s": "seconds"}}, r"nas-ep\.csv: no column 'seconds'; known: environment, ranks, rep, time_s"),
        ({"constants": {"app": "nas-ep"}}, r"no column 'toolchain'"),
        ({"drop": {"notes": ["x"]}}, r"drop: no column 'notes'"),
        ({"path": "data/published/none.csv"}, r"none\.csv: cannot be read"),
        ({"constants": {"app": "x", "toolchain": "x", "flags": "x", "ranks": "many"}}, r"ranks: row 2: 'many' is not a number"),
    ],
)
def test_an_import_that_cannot_be_is_one_line(change, message):
    study = load(STUDIES / "replay-alles2018.yaml")
    study["import"] = [study["import"][0] | change]
    with pytest.raises(TareError, match=message) as caught:
        imported(study)
    assert "\n" not in str(caught.value)


def test_a_misspelt_key_of_an_import_is_refused(tmp_path):
    path = tmp_path / "study.yaml"
    path.write_text("name: x\nimport: {path: a.csv, colums: {}}\n")
    with pytest.raises(TareError, match="colums"):
        load(path)


def test_a_row_without_a_time_is_a_failed_repeat(tmp_path):
    (tmp_path / "t.csv").write_text("app,toolchain,flags,backend,ranks,rep,wall_s\na,t,O2,native,1,1,2.0\na,t,O2,native,1,2,\n")
    study = {"where": "x", "name": "x", "import": [{"path": str(tmp_path / "t.csv")}]}
    measurements, _, facts = imported(study)
    assert measurements["status"].tolist() == ["ok", "failed"]
    assert (facts["cells"][0]["measured"], facts["cells"][0]["failed"]) == (1, 1)
    assert json.dumps(facts)
