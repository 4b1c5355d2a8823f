"""Apps, the timer, the binder and images: built on a compute node, in the userland where they will run."""

HARNESS = sorted(
    str(path)
    for path in Path("src/apps").glob("**/*.[ch]")
    if path.parent.name == "harness" or path.suffix == ".h"
)


rule build_app:
    input:
        source="src/apps/{app}.c",
        harness=HARNESS,
    output:
        "build/{userland}/{toolchain}/{flags}/{app}",
    log:
        "build/log/{userland}/{toolchain}/{flags}/{app}.log",
    conda:
        "../envs/analysis.yaml"
    resources:
        **TARE.slurm(),
    params:
        compiler=TARE.compiler,
        mpicc=TARE.mpicc,
        flags=TARE.flags,
    shell:
        "OMPI_CC={params.compiler} {params.mpicc} -std=c11 -Wall -Wextra -Werror -D_GNU_SOURCE {params.flags} -ffp-contract=off"
        " -o {output} {input.source} src/apps/harness/*.c -lm &> {log}"


rule build_tool:
    input:
        "src/launch/{tool}.c",
    output:
        "build/{userland}/{tool}",
    log:
        "build/log/{userland}/{tool}.log",
    conda:
        "../envs/analysis.yaml"
    resources:
        **TARE.slurm(),
    shell:
        "cc -std=c11 -Wall -Wextra -Werror -D_GNU_SOURCE -O2 -o {output} {input} &> {log}"


rule fetch_image:
    input:
        "containers/userlands.ini",
    output:
        "build/images/{userland}.docker.json",
    log:
        "build/log/{userland}/fetch_image.log",
    conda:
        "../envs/analysis.yaml"
    resources:
        **TARE.slurm(),
    params:
        site=TARE.study["site"],
    shell:
        "python3 -m tare.cli image fetch --site {params.site} --userland {wildcards.userland} &> {log}"


rule build_sif:
    input:
        TARE.sif_inputs,
    output:
        sif="build/images/{userland}.sif",
        note="build/images/{userland}.sif.json",
    log:
        "build/log/{userland}/build_sif.log",
    conda:
        "../envs/analysis.yaml"
    resources:
        **TARE.slurm(),
    params:
        site=TARE.study["site"],
    shell:
        "python3 -m tare.cli image build-sif --site {params.site} --userland {wildcards.userland} &> {log}"
