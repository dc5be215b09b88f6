"""A traceback or an error is read whatever pasting has set before its lines; what only looks like a margin stays."""

from __future__ import annotations

import textwrap

import pytest

from dtdebug_taxonomy.logs.event_reader import last_exception
from dtdebug_taxonomy.logs.pasted_margins import without_margins

TRACE = """\
Traceback (most recent call last):
  File "/job/train.py", line 40, in <module>
    main()
  File "/job/train.py", line 31, in main
    model = build(cfg)
ValueError: fsdp2 is not a valid FSDPOption"""


def numbered(form: str) -> str:
    return "\n".join(form.format(n, row) for n, row in enumerate(TRACE.split("\n"), 117))


@pytest.mark.parametrize(
    "text",
    [
        *(textwrap.indent(TRACE, margin) for margin in (" ", "    ", "\t", "> ", "│ ", "| ")),
        *map(numbered, ("{:4} | {}", "{}: {}", "  {}\t{}", "{:>5}│ {}")),
        "\n".join(f" {row.strip()}" for row in TRACE.split("\n")),
        f"It fails:\n\n{textwrap.indent(TRACE, '      ')}\n\nwith the newest release",
    ],
)
def test_a_pasted_traceback_is_read_with_its_last_line(text: str) -> None:
    bare = without_margins(text)
    assert bare.count("\n") == text.count("\n")
    found = last_exception(bare)
    assert found is not None
    assert (found.type, found.message) == ("ValueError", "fsdp2 is not a valid FSDPOption")
    assert found.frames[-1].line == 31


@pytest.mark.parametrize("margin", [" ", "    ", "\t", "> ", "│ "])
@pytest.mark.parametrize("error", ["RuntimeError: CUDA error: invalid device ordinal", "torch.OutOfMemoryError: x"])
def test_a_lone_error_stands_at_the_margin(margin: str, error: str) -> None:
    assert without_margins(f"a bug\n\n{margin}{error}\n\n$ torchrun a.py").split("\n")[2] == error
    assert without_margins(f" {error}\n$ torchrun a.py").split("\n")[0] == error


@pytest.mark.parametrize(
    "text",
    [
        "step 1 loss 2\n  caught ValueError: bad sample, skipping\nstep 2 loss 1",
        'def f():\n    """Do.\n    Raises:\n        ValueError: if it is odd.\n    """',
        "    step 1 loss 2\n    step 2 loss 1",
        '0: Traceback (most recent call last):\n0:   File "a.py", line 1\n0: ValueError: x',
        "0: Traceback (most recent call last):\n1: Traceback (most recent call last):\n2: ValueError: x",
        "0: ready\n1: ready\n2: ready\n3: RuntimeError: gone",
        "╭── Traceback (most recent call last) ──╮\n│ a.py:3 in f │\n╰──╯\nValueError: x",
    ],
)  # fmt: skip
def test_what_is_no_margin_stays(text: str) -> None:
    assert without_margins(text) == text
