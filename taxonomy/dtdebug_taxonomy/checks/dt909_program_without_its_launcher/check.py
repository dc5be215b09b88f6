"""Programs that read variables set only by a launcher, and that a script starts by plain `python`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.names import INIT
from dtdebug_taxonomy.checks.shared.passing import always_runs
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.started_programs import StartedProgram, started_programs
from dtdebug_taxonomy.source.text import Span

_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE")
_SETS = re.compile(r"\b(RANK|LOCAL_RANK|WORLD_SIZE)\b")
_HARMLESS = re.compile(r"activate|conda|bashrc|profile|venv|modules?\b|setvars|/etc/")
"""Files that scripts source and that set no rank."""


def check(script: Script) -> Iterator[Hit]:
    """Report the program if no launcher starts it and nothing in the script sets its rank."""
    if not script.commands or _reads_others(script):
        return
    named = {v.name for v in script.variables}
    known: dict[Code, tuple[ast.AST, str, str] | None] = {}
    for start in started_programs(script):
        if start.launch is not None or start.code is None or start.before or start.command.branch:
            continue
        if start.code not in known:
            known[start.code] = _launcher_need(start.code)
        needed = known[start.code]
        if needed is None or needed[2] in named or "RANK" in named:
            continue
        place = start.code.text.place(start.code.span(needed[0]).start)
        name = start.name
        yield Hit(
            start.program.span,
            f"{name} {needed[1]} (line {place.line}), which only a launcher sets, and plain python starts it here: "
            "it ends there with an error. Start it with torchrun.",
            _fix(start),
        )


def _reads_others(script: Script) -> bool:
    """True if other scripts that this one sources may set ranks."""
    sourced = (c for c in script.commands if c.name in {"source", "."} and len(c.words) > 1)
    return any(not _HARMLESS.search(c.words[1].text) for c in sourced)


def _launcher_need(code: Code) -> tuple[ast.AST, str, str] | None:
    """Return the first place that definitely runs and needs a launcher: (node, its action, variable)."""
    if code.role == "test" or _sets_itself(code):
        return None
    for read in code.nodes(ast.Subscript):
        if isinstance(read.ctx, ast.Load) and code.name(read.value) == "os.environ":
            variable = code.constant(read.slice)
            if variable in _VARIABLES and always_runs(code, read):
                return read, f"reads os.environ[{str(variable)!r}]", str(variable)
    for call in code.calls(INIT):
        given = {k.arg for k in call.keywords}
        if given & {"rank", "world_size", "store", None} or len(call.args) > 1:
            continue
        if code.constant(code.argument(call, "init_method")) in {None, "env://"} and always_runs(code, call):
            if "init_method" in given and code.constant(code.argument(call, "init_method")) is None:
                continue
            return call, "makes its process group from RANK and WORLD_SIZE", "RANK"
    return None


def _sets_itself(code: Code) -> bool:
    """True if a program sets a rank for itself or for processes that it starts."""
    if code.imports_any("torch.multiprocessing", "multiprocessing", "mpi4py", "submitit", "ray", "deepspeed"):
        return True
    return any(v.is_set and _SETS.fullmatch(v.name) for v in code.variables)


def _fix(start: StartedProgram) -> Fix | None:
    """Return a fix that replaces the interpreter by a launcher with one process per device."""
    if start.python is None or not start.python.text.startswith("python"):
        return None
    at, to = start.python.span.start, start.program.span.start
    if not at < to:
        return None
    module = "-m " if start.program.text[-3:] != ".py" else ""
    edit = Edit(Span(at, to), f"torchrun --standalone --nproc-per-node=gpu {module}")
    return Fix("Start one process for each device", (edit,), safe=False)
