"""Calls of a program that ask for another number of ranks than the command starts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.contract_calls import broken_calls, sentence
from dtdebug_taxonomy.checks.shared.programs import option_value, processes
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.known_values import Origin
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.started_programs import StartedProgram, started_programs


def check(script: Script) -> Iterator[Hit]:
    """Report the launcher, once for each program that it starts."""
    for start in started_programs(script):
        code, ranks = start.code, processes(script, start)
        if code is None or start.launch is None or ranks is None:
            continue
        found = broken_calls(code, size=ranks, option=partial(_option, start, script, code))
        for broken in found:
            said = sentence(code, broken)
            if broken.is_started and said:
                line = code.text.place(code.span(broken.call).start).line
                many = f"{ranks} rank{'s' * (ranks > 1)}"
                yield Hit(start.launch.place, f"This starts {many} of {start.name}, line {line}: {said}")
                break


def _option(start: StartedProgram, script: Script, code: Code, node: ast.Attribute) -> tuple[object, Origin] | None:
    value = option_value(code, start, script, node)
    whole = int(value) if isinstance(value, str) and value.isdecimal() else value  # as `type=int` makes it
    return None if value is None else (whole, Origin(code.source_of(node), node, code))
