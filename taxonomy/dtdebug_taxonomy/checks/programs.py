"""What a program says of itself to whoever looks at the command that starts it: its options, what it surely does."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import NamedTuple

from dtdebug_taxonomy.checks.configured import accelerate_processes
from dtdebug_taxonomy.checks.launching import nodes
from dtdebug_taxonomy.source.commands import Word
from dtdebug_taxonomy.source.launch import LaunchCommand
from dtdebug_taxonomy.source.names import dotted
from dtdebug_taxonomy.source.python import Code
from dtdebug_taxonomy.source.shell import Script
from dtdebug_taxonomy.source.starting import Started, given, started
from dtdebug_taxonomy.source.syntax import FUNCTIONS

_ELSEWHERE = re.compile(
    r"parse_known_args|HfArgumentParser|parents\s*=|add_subparsers|REMAINDER|allow_abbrev|prefix_chars"
)
"""What makes a parser take options that this file does not tell, or split them in its own way."""
_ADDED = {"deepspeed.add_config_arguments": ("--deepspeed", "--deepspeed_config", "--deepscale", "--deepscale_config")}
"""Calls that add known options to a parser that they are given."""
_NUMBER = {"torchrun": "--nproc-per-node", "deepspeed": "--num_gpus", "accelerate launch": "--num_processes"}
"""The option for the number of processes; of torchrun and deepspeed, on each node."""

_SEVERAL_WORDS = re.compile(r"[@*`(]|args|opts|option|flag|extra|param", re.IGNORECASE)
"""A variable that may hold options, by its name."""
_MAY_NOT = (
    *(ast.IfExp, ast.BoolOp, ast.Try, ast.ExceptHandler, ast.While, ast.For, ast.Match),
    *(ast.Lambda, ast.ListComp, ast.DictComp, ast.GeneratorExp, ast.ClassDef),
)
"""What is around a place that may not be passed, or not be passed when the program is started."""


def surely(code: Code, node: ast.AST, depth: int = 4) -> bool:
    """Whether a place is passed whenever the program is started, as far as this file tells."""
    inner: ast.AST = node
    for up in code.ancestors(node):
        if isinstance(up, ast.If):
            main = isinstance(up.test, ast.Compare) and dotted(up.test.left) == "__name__" and inner in up.body
            if not main and inner is not up.test:
                return False
        elif isinstance(up, _MAY_NOT):
            return False
        if isinstance(inner, ast.stmt) and not isinstance(up, ast.Module) and _left_before(code, inner):
            return False
        if isinstance(up, FUNCTIONS):
            if not depth or not code.is_plain(up):
                return False
            return any(surely(code, c, depth - 1) for c in code.callers.get(up, ())[:8])
        inner = up
    return True


def _left_before(code: Code, statement: ast.stmt) -> bool:
    """Whether the block of a statement may be left before it."""
    for earlier in code.block(statement):
        if earlier is statement:
            return False
        if isinstance(earlier, ast.If | ast.Try) and any(True for _ in code.inside(earlier, ast.Return, ast.Raise)):
            return True
    return False


class Options(NamedTuple):
    """The options of the one parser of a program."""

    calls: dict[str, ast.Call]
    """Spelling -> the call that adds it, or that adds the options of a library."""
    names: list[str]
    """The spellings in their order."""

    def knows(self, name: str) -> bool:
        """Whether argparse takes a spelling: in full, or as the beginning of one."""
        at = bisect_left(self.names, name)
        return at < len(self.names) and self.names[at].startswith(name)

    def default(self, code: Code, attribute: str) -> object:
        """What `args.attribute` is where nobody gives the option; None where that can't be told."""
        call = self.call(code, attribute)
        if call is None or any(k.arg in {"action", "required", "nargs"} for k in call.keywords):
            return None
        return code.constant(code.argument(call, "default"))

    def call(self, code: Code, attribute: str) -> ast.Call | None:
        """The call that adds the option of an attribute."""
        for call in dict.fromkeys(self.calls.values()):
            dest = code.constant(code.argument(call, "dest"))
            names = [str(a.value) for a in call.args if isinstance(a, ast.Constant)]
            long = next((n for n in names if n.startswith("--")), "")
            if (dest or long.lstrip("-").replace("-", "_")) == attribute:
                return call
        return None


def options(code: Code) -> Options | None:
    """All options of a program; None where it may have others than this file tells. Kept with it."""
    if "_options" not in code.__dict__:
        code.__dict__["_options"] = _options(code)
    found: Options | None = code.__dict__["_options"]
    return found


def _options(code: Code) -> Options | None:
    if len(code.calls("argparse.ArgumentParser")) != 1 or _ELSEWHERE.search(code.text):
        return None
    if not any(not c.args and not c.keywords for c in code.methods("parse_args")):
        return None
    parser = code.calls("argparse.ArgumentParser")[0]
    kept = code.parent.get(parser)
    if not isinstance(kept, ast.Assign) or not all(isinstance(t, ast.Name) for t in kept.targets):
        return None
    names = {dotted(t) for t in kept.targets}
    found: dict[str, ast.Call] = {}
    for call in code.nodes(ast.Call):
        if any(dotted(a) in names for a in (*call.args, *(k.value for k in call.keywords))):
            added = _ADDED.get(code.name(call.func))
            if added is None:
                return None  # who is given the parser may add to it
            found |= dict.fromkeys(added, call)
    for call in code.methods("add_argument"):
        spellings = [a.value if isinstance(a, ast.Constant) else None for a in call.args]
        if not spellings or not all(isinstance(s, str) for s in spellings) or code.has_unpacking(call):
            return None
        found |= {str(s): call for s in spellings if str(s).startswith("-")}
    found |= {"--help": parser, "-h": parser}
    return Options(found, sorted(found))


def unknown_words(words: tuple[Word, ...]) -> bool:
    """Whether arguments may hold options that are put in later: `"$@"`, `$EXTRA`; the value of an option does not."""
    for at, word in enumerate(words):
        before = words[at - 1].text if at else ""
        is_value = before.startswith("--") and "=" not in before and not _SEVERAL_WORDS.search(word.text)
        if word.text.startswith(("$", "`")) and not is_value:
            return True
    return False


def number_of(code: Code, start: Started, script: Script, node: ast.expr | None) -> int | None:
    """The number that an expression of a program is when this command starts it: a constant, or one of its options."""
    value = code.constant(node)
    if value is None and isinstance(node, ast.Attribute | ast.Name):
        value = _option_value(code, start, script, node)
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _option_value(code: Code, start: Started, script: Script, node: ast.expr) -> object:
    if not isinstance(node, ast.Attribute):
        values = code.values(node)
        if len(values) != 1 or not isinstance(values[0], ast.Attribute):
            return None
        node = values[0]
    made = code.values(node.value)
    parsed = len(made) == 1 and isinstance(made[0], ast.Call) and _parses(code, made[0])
    known = options(code) if parsed else None
    call = known.call(code, node.attr) if known else None
    if known is None or call is None or unknown_words(start.arguments):
        return None
    if any(isinstance(n.ctx, ast.Store) and n.attr == node.attr for n in code.nodes(ast.Attribute)):
        return None
    spellings = {a.value for a in call.args if isinstance(a, ast.Constant)}
    rows = [value for _, name, value in given(script, start.arguments) if name in spellings]
    return rows[-1] if rows else known.default(code, node.attr)


def _parses(code: Code, call: ast.Call) -> bool:
    """`parser.parse_args()`, or a function that returns it."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "parse_args":
        return True
    returned = code.returned(call)
    made = [v for r in returned for v in (code.values(r) if dotted(r) else [r])]
    return bool(made) and all(
        isinstance(v, ast.Call) and isinstance(v.func, ast.Attribute) and v.func.attr == "parse_args" for v in made
    )


def processes(script: Script, start: Started) -> int | None:
    """How many ranks a launcher starts in all; None where that is not told."""
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
    """Whether torchrun may take options from the environment; kept with the script."""
    if "_by_variables" not in script.__dict__:
        script.__dict__["_by_variables"] = "PET_" in script.text
    return bool(script.__dict__["_by_variables"])


def several_started(script: Script, start: Started) -> bool:
    """Whether a launcher surely starts several ranks, also where their number is `gpu` or `auto`."""
    launch = start.launch
    many = processes(script, start)
    if launch is None or many is not None:
        return bool(many and many > 1)
    words = launch.options.get(_NUMBER.get(launch.launcher, ""))
    return words is not None and words.value is not None and words.value.text in {"gpu", "auto"}


def started_several_times(
    script: Script, find: Callable[[Code], ast.Call | None]
) -> Iterator[tuple[LaunchCommand, str, int]]:
    """The launches of several ranks whose program holds a call: the launch, the program, and the line of the call."""
    known: dict[Code, ast.Call | None] = {}
    for start in started(script):
        if start.launch is None or start.code is None or not several_started(script, start):
            continue
        if start.code not in known:
            known[start.code] = find(start.code)
        if (call := known[start.code]) is not None:
            yield start.launch, start.name, start.code.text.place(start.code.span(call).start).line
