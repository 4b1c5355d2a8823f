"""The plan, and one Slurm job per block. The job runs what is missing; records are no outputs, so Snakemake never deletes them."""


include: "build.smk"


rule plan_study:
    input:
        TARE.config_files(),
    output:
        plan=f"{TARE.results}/plan.json",
    log:
        f"{TARE.results}/logs/plan_study.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        config=TARE.config_json,
    shell:
        "python3 -m tare.cli plan --config {params.config:q} --out {output.plan} &> {log}"


# Neither conda: nor container: here: how a rank is launched is what is measured (a test asserts that this is the only such rule).
rule measure_block:
    input:
        TARE.block_inputs,
        plan=TARE.plan_of_block,
    output:
        expand(
            "{results}/cells/{{app}}/{{toolchain}}/{{flags}}/{{layout}}/{arm}.json",
            results=TARE.results,
            arm=TARE.arms,
        ),
    log:
        f"{TARE.results}/logs/measure/{{app}}/{{toolchain}}/{{flags}}/{{layout}}.log",
    resources:
        **TARE.slurm_block(),
        nodes=TARE.block_nodes,
        tasks=TARE.block_nodes,
        cpus_per_task=TARE.site["cpus_per_node"],
        mem_mb=0,
    shell:
        "python3 -m tare.cli measure --plan {input.plan}"
        " --block {wildcards.app}/{wildcards.toolchain}/{wildcards.flags}/{wildcards.layout} &> {log}"


rule collect_study:
    input:
        stamps=TARE.stamps(),
        plan=f"{TARE.results}/plan.json",
    output:
        measurements=f"{TARE.results}/measurements.csv",
        metrics=f"{TARE.results}/metrics.csv",
        study=f"{TARE.results}/study.json",
    log:
        f"{TARE.results}/logs/collect_study.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    shell:
        "python3 -m tare.collect --plan {input.plan} --measurements {output.measurements} --metrics {output.metrics}"
        " --study {output.study} &> {log}"
