"""Cells become programs and scripts, and what is found in these leads back to its cell."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtdebug_taxonomy.checks.run.examine import examine
from dtdebug_taxonomy.source.notebook import Notebook, NotebookError, notebook_cells
from dtdebug_taxonomy.source.text import Text

IMPORT = "import torch.distributed as dist\n"
BAD = "if dist.get_rank() == 0:\n    dist.barrier()"


def places(*cells):
    notebook = Notebook([c if isinstance(c, tuple) else ("code", c) for c in cells])
    return [
        (f.check.id, at.cell, notebook.cells[at.cell][1][at.span.start : at.span.end])
        for source in notebook.sources
        for f in examine(source)
        for at in [notebook.place(source, f.span)]
    ]


def test_a_name_that_one_cell_imports_is_known_in_the_next():
    assert [("DT101", 2, "dist.barrier()")] == places(IMPORT, ("markdown", "# text"), BAD)


@pytest.mark.parametrize(
    "line",
    [
        "%matplotlib inline",
        "!pip install x",
        "x = !ls",
        "files=%who_ls",
        "print?",
        "dist.barrier??",
        "%env A=1",
        "a, b = !ls",
    ],
)
def test_what_ipython_alone_understands_moves_nothing(line):
    assert [("DT101", 1, "dist.barrier()")] == places(IMPORT + line, f"{line}\n{BAD}")


def test_a_command_may_go_on_over_lines():
    cell = "!NCCL_IB_DISBALE=1 \\\n  torchrun --nproc-per-node 2 \\\n  train.py\n" + BAD

    assert [("DT101", 1, "dist.barrier()"), ("DT901", 1, "NCCL_IB_DISBALE")] == sorted(places(IMPORT, cell))


def test_a_percent_sign_at_the_beginning_of_a_line_can_be_python():
    text = 'print("%s"\n  % 3)\n'

    assert text == Notebook([("code", text)]).code.text


def test_a_file_that_a_cell_writes_is_a_program_of_its_own():
    assert [("DT101", 0, "dist.barrier()")] == places(f"%%writefile train.py\n{IMPORT}{BAD}", "dist.barrier()")


def test_a_timed_cell_is_python_and_one_of_another_language_is_not():
    assert [("DT101", 1, "dist.barrier()")] == places(IMPORT, f"%%time\n{BAD}", f"%%html\n{BAD}")


def test_cells_of_old_and_damaged_notebooks_keep_their_numbers():
    old = {"nbformat": 3, "worksheets": [{"cells": [{"cell_type": "code", "input": ["a\n", "b"]}]}]}
    damaged = {"cells": [7, {"cell_type": "code", "source": [1, "x"]}, {"source": None}]}

    assert [("code", "a\nb")] == notebook_cells(json.dumps(old))
    assert [("markdown", ""), ("code", "x"), ("markdown", "")] == notebook_cells(json.dumps(damaged))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"cells": 3}', "[" * 100_000])
def test_a_file_that_is_no_notebook_says_so(text):
    with pytest.raises(NotebookError, match="is not a notebook"):
        notebook_cells(text)


@given(
    st.lists(st.text(alphabet='abc =%!?#\n\r\f\u2028"é😀(', max_size=40).filter(lambda c: c[:2] != "%%"), max_size=5)
)
def test_any_cell_keeps_its_length_and_its_lines(cells):
    before, after = "\n".join(cells), Notebook([("code", c) for c in cells]).code.text

    assert len(before) == len(after)
    assert Text(before).starts == after.starts
