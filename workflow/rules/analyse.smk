"""Tables: each is one module of src/tare/tables, an input of its rule, so that editing it rewrites that table and nothing else."""


rule write_table:
    input:
        measurements=f"{TARE.results}/measurements.csv",
        metrics=f"{TARE.results}/metrics.csv",
        study=f"{TARE.results}/study.json",
        module="src/tare/tables/{table}.py",
        shared=SHARED,
    output:
        csv=report(
            f"{TARE.results}/tables/{{table}}.csv",
            caption="../report/table.rst",
            category="Tables",
            labels={"table": "{table}"},
        ),
        markdown=f"{TARE.results}/tables/{{table}}.md",
        latex=f"{TARE.results}/tables/{{table}}.tex",
    log:
        f"{TARE.results}/logs/tables/{{table}}.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        caption=table_caption,
    shell:
        "python3 -m tare.tables {wildcards.table} --measurements {input.measurements} --study {input.study} -o {output} &> {log}"
