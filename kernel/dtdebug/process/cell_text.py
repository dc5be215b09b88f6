"""The text of a cell as IPython compiles it."""

from __future__ import annotations


def compiled_text(cell: str) -> str:
    """Return a cell without its leading empty lines: IPython drops them, and frames count lines from the next one.

    Source: `leading_empty_lines` in https://github.com/ipython/ipython/blob/main/IPython/core/inputtransformer2.py
    """
    lines = cell.splitlines(keepends=True)
    first = next((at for at, line in enumerate(lines) if not line.isspace()), 0)
    return "".join(lines[first:])
