"""Tables: one file each, with ``build(measurements, study) -> DataFrame``; the file's name is the table's name.

A file may say how many decimals a column is printed with (``DECIMALS = {"ratio": 3}``); CSV keeps all digits, Markdown and
LaTeX round half up. ``PIVOT = (column, value)`` prints one column per value of ``column``, as papers do; CSV stays tidy. The
first paragraph of its docstring is the caption.
"""

import sys
from typing import Any

import pandas as pd

from tare import analysis, tables
from tare.files import save
from tare.measurements import Study, read_pair
from tare.rounding import ABSENT, half_up, number, significant

FORMATS = (".csv", ".md", ".tex")
SIMULATED = "Simulated: nothing here was measured."
LATEX_SPECIAL = {**{sign: f"\\{sign}" for sign in "&%$#_{}"}, "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def names() -> list[str]:
    """Return the names of all tables."""
    return analysis.module_names(tables)


def build(name: str, measurements: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Return one table by name; a column says so where the numbers come from a simulation."""
    table: pd.DataFrame = analysis.load_module(tables, name, "table").build(measurements, study)
    return table.assign(simulated=True) if study["site"].get("simulated") else table


def text(name: str, table: pd.DataFrame, suffix: str) -> str:
    """Return a built table in the format that a suffix names."""
    if suffix == ".csv":
        return str(table.to_csv(index=False, lineterminator="\n"))
    module = analysis.load_module(tables, name, "table")
    caption = analysis.caption(module)
    if "simulated" in table.columns:
        table, caption = table.drop(columns="simulated"), f"{caption} {SIMULATED}"
    shown = layout(printed(table, getattr(module, "DECIMALS", {})), getattr(module, "PIVOT", None))
    return markdown(shown, caption) if suffix == ".md" else latex(shown, caption)


def printed(table: pd.DataFrame, decimals: dict[str, int]) -> pd.DataFrame:
    """Return a table as people read it: rounded half up, absent as a dash, columns with nothing in them left out."""
    shown = {column: [cell(value, decimals.get(column)) for value in table[column]] for column in table.columns}
    return pd.DataFrame({column: texts for column, texts in shown.items() if not texts or set(texts) != {ABSENT}})


def layout(shown: pd.DataFrame, pivot: tuple[str, str] | None) -> pd.DataFrame:
    """Return a printed table as papers set it: one column per value of ``pivot[0]``, holding ``pivot[1]``."""
    if pivot is None or shown.empty:
        return shown
    across, value = pivot
    keys = [name for name in shown.columns if name not in (across, value, "n") and (shown[name].nunique() > 1 or name == "app")]
    wide = shown.pivot(index=keys, columns=across, values=value).fillna(ABSENT)
    wide = wide[sorted(wide.columns, key=lambda text: (number(text) is None, number(text) or 0.0, text))]
    return wide.rename(columns=lambda text: f"{across} {text}").reset_index().rename_axis(columns=None)


def cell(value: Any, digits: int | None) -> str:
    """Return one value as text; a float with no given decimals gets four significant digits."""
    if isinstance(value, str):
        return value
    if number(value) is None:
        return ABSENT
    if digits is not None:
        return half_up(value, digits)
    if isinstance(value, float) and not value.is_integer():
        return significant(value, 4)
    return str(int(value)) if isinstance(value, float) else str(value)


def markdown(shown: pd.DataFrame, caption: str) -> str:
    """Return a printed table as Markdown."""
    rows = [list(shown.columns), ["---"] * len(shown.columns), *shown.to_numpy().tolist()]
    lines = [f"| {' | '.join(str(value).replace('|', '∣') for value in row)} |" for row in rows]
    return "\n".join([caption, "", *lines]) + "\n"


def latex(shown: pd.DataFrame, caption: str) -> str:
    """Return a printed table as LaTeX (booktabs)."""
    rows = [" & ".join(latex_escaped(str(value)) for value in row) + r" \\" for row in shown.to_numpy().tolist()]
    head = " & ".join(latex_escaped(column) for column in shown.columns) + r" \\"
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{latex_escaped(caption)}}}",
            rf"\begin{{tabular}}{{{'l' * len(shown.columns)}}}",
            *(r"\toprule", head, r"\midrule", *rows, r"\bottomrule"),
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def latex_escaped(value: str) -> str:
    """Return text with LaTeX's special characters escaped."""
    return "".join(LATEX_SPECIAL.get(sign, sign) for sign in value.replace("\\", "/"))


def write(argv: list[str]) -> None:
    """Write one table; the output's suffix says the format: .csv, .md or .tex."""
    arguments = analysis.parse("tare.tables", write.__doc__ or "", argv, "table")
    for path in arguments.output:
        analysis.check_suffix(path, FORMATS)
    if arguments.name not in names():
        analysis.load_module(tables, arguments.name, "table")
    table = build(arguments.name, *read_pair(arguments.measurements, arguments.study))
    for path in arguments.output:
        save(path, text(arguments.name, table, path.suffix).encode())


def main(argv: list[str] | None = None) -> int:
    """Run ``python -m tare.tables NAME --measurements … --study … -o …``."""
    return analysis.guarded(write, sys.argv[1:] if argv is None else argv)
