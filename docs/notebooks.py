"""Writes the learning notebooks from their sources: `python docs/notebooks.py`, or `--check` to compare only."""

from __future__ import annotations

import sys
from pathlib import Path

import jupytext
import nbformat

FOLDER = Path(__file__).parents[1] / "kernel/dtdebug/learn/notebooks"


def notebook(source: Path) -> str:
    """The notebook of a source: no outputs, and the same cells have the same ids each time."""
    made = jupytext.read(source, fmt="py:percent")
    for number, cell in enumerate(made.cells):
        cell.id = f"{source.stem}-{number}".replace("_", "-")
    made.metadata = {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    made.nbformat, made.nbformat_minor = 4, 5
    nbformat.validate(made)
    return nbformat.writes(made, sort_keys=True) + "\n"


def main(*, check: bool) -> int:
    """Writes what differs, or only names it."""
    differs = 0
    for source in sorted(FOLDER.glob("[0-9]*.py")):
        path, text = source.with_suffix(".ipynb"), notebook(source)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            differs = 1
            print(f"{path.name} {'differs from its source' if check else 'written'}")
            if not check:
                path.write_text(text, encoding="utf-8")
    return differs if check else 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
