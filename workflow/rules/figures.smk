"""Figures: each is one module of src/tare/figures, an input of its rule, so that editing it redraws that figure and nothing else."""


rule draw_figure:
    input:
        measurements=f"{TARE.results}/measurements.csv",
        metrics=f"{TARE.results}/metrics.csv",
        study=f"{TARE.results}/study.json",
        module="src/tare/figures/{figure}.py",
        shared=SHARED,
    output:
        svg=report(
            f"{TARE.results}/figures/{{figure}}.svg",
            caption="../report/figure.rst",
            category="Figures",
            labels={"figure": "{figure}"},
        ),
        png=f"{TARE.results}/figures/{{figure}}.png",
    log:
        f"{TARE.results}/logs/figures/{{figure}}.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        caption=figure_caption,
    shell:
        "python3 -m tare.figures {wildcards.figure} --measurements {input.measurements} --study {input.study} -o {output.svg} -o {output.png} &> {log}"
