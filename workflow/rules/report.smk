"""The report: one page that opens from disk; and what Snakemake's own report (``snakemake --report``) begins with."""


report: "../report/workflow.rst"


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
        report(
            f"{TARE.results}/report.html",
            caption="../report/answer.rst",
            category="Answer",
            labels={"page": "the whole study on one page"},
        ),
    log:
        f"{TARE.results}/logs/write_report.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    shell:
        "python3 -m tare.report --measurements {input.measurements} --study {input.study} -o {output} &> {log}"
