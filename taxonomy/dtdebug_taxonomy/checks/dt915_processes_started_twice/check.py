"""Programs that start processes themselves, started several times by a launcher."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.names import INIT
from dtdebug_taxonomy.checks.shared.passing import always_runs
from dtdebug_taxonomy.checks.shared.programs import started_several_times
from dtdebug_taxonomy.checks.shared.spawning import SPAWN
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.shell.script import Script


def check(script: Script) -> Iterator[Hit]:
    """Report the launcher."""
    for launch, name, line in started_several_times(script, _spawns):
        yield Hit(
            launch.place,
            f"{name} starts a process for each device itself (line {line}), and {launch.launcher} starts it "
            "several times: each copy starts them all, on the same devices and the same port. Start it by plain "
            "python, or take the spawning out of the program.",
        )


def _spawns(code: Code) -> ast.Call | None:
    """Return the call by which a program definitely starts its ranks; None if there is none."""
    if any(v.name in {"RANK", "LOCAL_RANK", "GROUP_RANK"} and not v.is_set for v in code.variables):
        return None  # it checks whether a launcher has started it
    for call in code.calls(*SPAWN):
        number = code.argument(call, "nprocs", 2)
        if number is None or code.constant(number) in {1, "1"} or not always_runs(code, call):
            continue
        function = code.functions.get(dotted_name(code.argument(call, "fn", 0)), [])
        inits = code.calls(INIT)
        if len(function) == 1 and inits:
            return call
    return None
