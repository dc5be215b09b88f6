"""Data loaders that both a sampler and `accelerator.prepare()` divide between the ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.names import LOADER, SAMPLER
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name


def check(code: Code) -> Iterator[Hit]:
    """Report the loader passed to `prepare`."""
    if not code.calls(SAMPLER) or not code.calls("accelerate.Accelerator"):
        return
    for call in code.methods("prepare", "prepare_data_loader"):
        if not isinstance(call.func, ast.Attribute) or "accelerator" not in dotted_name(call.func.value).lower():
            continue
        for given in call.args:
            if (line := _sampler_line(code, given)) is not None:
                yield Hit(
                    code.span(given),
                    f"The sampler of this loader (line {line}) divides the data between the ranks, "
                    "and prepare() does so once "
                    "more: with N ranks only 1/N of the samples are seen. Leave the sampler out.",
                )


def _sampler_line(code: Code, loader: ast.expr) -> int | None:
    """Return the line of the distributed sampler that all values of a loader have; None if that is uncertain."""
    lines: list[int] = []
    for value in code.values(loader):
        if not isinstance(value, ast.Call) or code.name(value.func) != LOADER:
            return None
        sampler = code.argument(value, "sampler", 3)
        made = code.values(sampler)[0] if sampler is not None else None
        if sampler is None or made is None or not code.is_made_by(sampler, SAMPLER):
            return None
        lines.append(code.text.place(code.span(made).start).line)
    return lines[0] if lines else None
