"""Published data instead of measured: measurements.csv comes from files, and everything after it is the same."""


rule import_study:
    input:
        TARE.imported_files,
    output:
        measurements=f"{TARE.results}/measurements.csv",
        metrics=f"{TARE.results}/metrics.csv",
        study=f"{TARE.results}/study.json",
    log:
        f"{TARE.results}/logs/import_study.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        study=TARE.study["where"],
    shell:
        "python3 -m tare.importing {params.study} --measurements {output.measurements} --metrics {output.metrics}"
        " --study {output.study} &> {log}"
