"""Ranks that a program takes from its own options, under a launcher that passes none."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.names import INIT
from dtdebug_taxonomy.checks.shared.parsers import options
from dtdebug_taxonomy.checks.shared.programs import several_started, unknown_words
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.started_programs import long_options, started_programs


def check(script: Script) -> Iterator[Hit]:
    """Report the program if the launcher starts several ranks of it."""
    for start in started_programs(script):
        if start.launch is None or start.code is None or start.launch.launcher != "torchrun":
            continue
        if not several_started(script, start) or unknown_words(start.arguments):
            continue
        named = {name.lstrip("-").replace("-", "_") for _, name, _ in long_options(script, start.arguments)}
        option = _option(start.code)
        if option is None or option[0] in named:
            continue
        line = start.code.text.place(start.code.span(option[1]).start).line
        yield Hit(
            start.program.span,
            f"torchrun tells each process its rank in the environment and passes no --{option[0]}: on all of them "
            f"args.{option[0]} keeps its default, and each makes a group (line {line}) as rank {option[2]}. "
            "Leave rank and world_size out there.",
        )


def _option(code: Code) -> tuple[str, ast.Call, object] | None:
    """Return the option for the process group's rank, the call that makes the group, and the default."""
    if any(v.name in {"RANK", "WORLD_SIZE"} for v in code.variables):
        return None
    known = options(code)
    for call in code.calls(INIT) if known else ():
        rank = code.argument(call, "rank", 4)
        if not isinstance(rank, ast.Attribute) or known is None:
            continue
        default = known.default(rank.attr)
        stored = any(isinstance(n.ctx, ast.Store) and n.attr == rank.attr for n in code.nodes(ast.Attribute))
        if isinstance(default, int) and not stored and dotted_name(rank):
            return rank.attr, call, default
    return None
