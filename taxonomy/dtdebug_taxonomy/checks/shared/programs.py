"""Facts of a program for the command that starts it: values of its expressions, number of processes."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from dtdebug_taxonomy.checks.shared.configured import accelerate_processes
from dtdebug_taxonomy.checks.shared.launching import nodes
from dtdebug_taxonomy.checks.shared.parsers import options
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.config_files import parses
from dtdebug_taxonomy.source.shell.commands import Word
from dtdebug_taxonomy.source.shell.launch import LaunchCommand
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.started_programs import StartedProgram, long_options, started_programs

_NUMBER = {"torchrun": "--nproc-per-node", "deepspeed": "--num_gpus", "accelerate launch": "--num_processes"}
"""Option for the number of processes; for torchrun and deepspeed, per node."""

_SEVERAL_WORDS = re.compile(r"[@*`(]|args|opts|option|flag|extra|param", re.IGNORECASE)
"""Names of variables that may hold options."""


def unknown_words(words: tuple[Word, ...]) -> bool:
    """True if arguments may contain options inserted later: `"$@"`, `$EXTRA`; values of options don't count."""
    for at, word in enumerate(words):
        before = words[at - 1].text if at else ""
        is_value = before.startswith("--") and "=" not in before and not _SEVERAL_WORDS.search(word.text)
        if word.text.startswith(("$", "`")) and not is_value:
            return True
    return False


def number_of(code: Code, start: StartedProgram, script: Script, node: ast.expr | None) -> int | None:
    """Return the integer that an expression has under this command: a constant, or one of the program's options."""
    value = code.constant(node)
    if value is None and isinstance(node, ast.Attribute | ast.Name):
        value = option_value(code, start, script, node)
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def option_value(code: Code, start: StartedProgram, script: Script, node: ast.expr) -> object:
    """Return the value of an option of the program, such as `args.layers`, under this command; None if unknown."""
    if not isinstance(node, ast.Attribute):
        values = code.values(node)
        if len(values) != 1 or not isinstance(values[0], ast.Attribute):
            return None
        node = values[0]
    made = code.values(node.value)
    parsed = len(made) == 1 and isinstance(made[0], ast.Call) and parses(code, made[0])
    known = options(code) if parsed else None
    call = known.call(node.attr) if known else None
    if known is None or call is None or unknown_words(start.arguments):
        return None
    if any(isinstance(n.ctx, ast.Store) and n.attr == node.attr for n in code.nodes(ast.Attribute)):
        return None
    spellings = {a.value for a in call.args if isinstance(a, ast.Constant)}
    rows = [value for _, name, value in long_options(script, start.arguments) if name in spellings]
    return rows[-1] if rows else known.default(node.attr)


def processes(script: Script, start: StartedProgram) -> int | None:
    """Return the total number of ranks that a launcher starts; None if unknown."""
    launch = start.launch
    if launch is None or not launch.certain or _by_variables(script):
        return None
    many = launch.number(script, _NUMBER.get(launch.launcher, ""))
    if many is None and launch.launcher == "torchrun" and "--nproc-per-node" not in launch.options:
        many = 1
    if launch.launcher == "accelerate launch":
        told = accelerate_processes(script, start) if many is None else None
        return told[0] if told else many
    if many is None:
        return None
    asked = any(name in launch.options for name in ("--nnodes", "--num_nodes", "--hostfile"))
    each = nodes(script, launch) if asked else 1
    return many * each if each and not start.runs_under("mpirun", "mpiexec", "orterun") else None


def _by_variables(script: Script) -> bool:
    """True if torchrun may take options from the environment; cached with the script."""
    if "_by_variables" not in script.__dict__:
        script.__dict__["_by_variables"] = "PET_" in script.text
    return bool(script.__dict__["_by_variables"])


def several_started(script: Script, start: StartedProgram) -> bool:
    """True if a launcher definitely starts several ranks, also if their number is `gpu` or `auto`."""
    launch = start.launch
    many = processes(script, start)
    if launch is None or many is not None:
        return bool(many and many > 1)
    words = launch.options.get(_NUMBER.get(launch.launcher, ""))
    return words is not None and words.value is not None and words.value.text in {"gpu", "auto"}


def started_several_times(
    script: Script, find: Callable[[Code], ast.Call | None]
) -> Iterator[tuple[LaunchCommand, str, int]]:
    """Yield launches of several ranks whose program contains a call: (launch, program, line of the call)."""
    known: dict[Code, ast.Call | None] = {}
    for start in started_programs(script):
        if start.launch is None or start.code is None or not several_started(script, start):
            continue
        if start.code not in known:
            known[start.code] = find(start.code)
        if (call := known[start.code]) is not None:
            yield start.launch, start.name, start.code.text.place(start.code.span(call).start).line
