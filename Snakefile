"""Tare: what do containers cost a parallel program? Rules stand in workflow/rules/, everything they call in src/tare/."""

from snakemake.utils import min_version

min_version("9.0")


# The study is config/config.yaml unless --configfile or --config study=<file> names another; --config repeats=8 overrides one key.
include: "workflow/rules/common.smk"
include: TARE.source_rules
include: "workflow/rules/analyse.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/report.smk"


rule all:
    default_target: True
    input:
        TARE.stamps(),
        f"{TARE.results}/measurements.csv",
        expand("{results}/tables/{table}.csv", results=TARE.results, table=TABLES),
        expand("{results}/figures/{figure}.svg", results=TARE.results, figure=FIGURES),
        f"{TARE.results}/report.html",
    localrule: True
