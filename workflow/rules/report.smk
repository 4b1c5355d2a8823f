"""The report: one page that opens from disk."""


rule write_report:
    input:
        measurements=f"{TARE.results}/measurements.csv",
        metrics=f"{TARE.results}/metrics.csv",
        study=f"{TARE.results}/study.json",
        template=sorted(str(path) for path in Path("workflow/report").iterdir()),
        figures=[f"src/tare/figures/{name}.py" for name in FIGURES],
        modules=sorted(str(path) for path in Path("src/tare").glob("report*.py")),
        shared=SHARED,
    output:
        f"{TARE.results}/report.html",
    log:
        f"{TARE.results}/logs/write_report.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    shell:
        "python3 -m tare.report --measurements {input.measurements} --study {input.study} -o {output} &> {log}"
