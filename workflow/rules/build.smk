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
        binary="build/{userland}/{toolchain}/{flags}/{app}",
        note="build/{userland}/{toolchain}/{flags}/{app}.json",
    log:
        "build/log/{userland}/{toolchain}/{flags}/{app}.log",
    conda:
        "../envs/analysis.yaml"
    resources:
        **TARE.slurm(),
    params:
        site=TARE.study["site"],
    shell:
        "python3 -m tare.cli build --site {params.site} --userland {wildcards.userland} --toolchain {wildcards.toolchain}"
        " --flags {wildcards.flags} --app {wildcards.app} &> {log}"


# Not built here: the note says which program the nodes have, and every rank of it must prove that it is that one.
rule find_program:
    output:
        note=f"build/{{userland}}/{{toolchain}}/{PACKAGED}/{{app}}.json",
    log:
        f"build/log/{{userland}}/{{toolchain}}/{PACKAGED}/{{app}}.log",
    conda:
        "../envs/analysis.yaml"
    resources:
        **TARE.slurm(),
    params:
        site=TARE.study["site"],
        executable=TARE.executable,
    shell:
        "python3 -m tare.cli build --site {params.site} --userland {wildcards.userland} --toolchain {wildcards.toolchain}"
        " --app {wildcards.app} --executable {params.executable:q} &> {log}"


ruleorder: find_program > build_app


rule build_proof:
    input:
        "src/launch/proof.c",
        HARNESS,
    output:
        f"build/{{userland}}/{{toolchain}}/{PACKAGED}/{PROOF_LIBRARY}",
    log:
        f"build/log/{{userland}}/{{toolchain}}/{PACKAGED}/build_proof.log",
    conda:
        "../envs/analysis.yaml"
    resources:
        **TARE.slurm(),
    params:
        site=TARE.study["site"],
    shell:
        "python3 -m tare.cli build --site {params.site} --userland {wildcards.userland} --toolchain {wildcards.toolchain}"
        " --proof &> {log}"


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
    params:
        site=TARE.study["site"],
    shell:
        "python3 -m tare.cli build --site {params.site} --userland {wildcards.userland} --tool {wildcards.tool} &> {log}"


rule build_profile:
    input:
        "src/profile/profile.c",
    output:
        "build/{userland}/{toolchain}/profile.so",
    log:
        "build/log/{userland}/{toolchain}/profile.log",
    conda:
        "../envs/analysis.yaml"
    resources:
        **TARE.slurm(),
    params:
        site=TARE.study["site"],
    shell:
        "python3 -m tare.cli build --site {params.site} --userland {wildcards.userland} --toolchain {wildcards.toolchain}"
        " --profile &> {log}"


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
