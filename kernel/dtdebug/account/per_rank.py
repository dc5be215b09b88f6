"""Sources of a value that each rank has of its own: its number, chance, the clock, its host and files.

A value that is made of it differs from rank to rank, though all of them run one program.
"""

from __future__ import annotations

import ast
import re

from dtdebug.account.last_bindings import Making
from dtdebug_taxonomy.model.launch_variables import LOCAL_RANK, NODE_RANK, RANK
from dtdebug_taxonomy.source.python.names import dotted_name

_RANK = re.compile(
    r"(?:global_|local_|node_|my_|dp_|world_)?rank|get_(?:global_|local_|node_)?rank|(?:local_)?process_index"
    r"|is_(?:local_)?main_process|is_(?:global_)?(?:master|rank_zero|zero)|is_main"
)
_VARIABLES = frozenset({*RANK, *LOCAL_RANK, *NODE_RANK})
_CHANCE = frozenset({
    "random.choice", "random.choices", "random.randint", "random.random", "random.randrange", "random.sample",
    "random.uniform", "np.random.choice", "np.random.randint", "numpy.random.choice", "numpy.random.randint",
    "time.time", "time.perf_counter", "time.monotonic", "os.getpid", "socket.gethostname", "uuid.uuid4",
    "platform.node", "datetime.now", "datetime.datetime.now", "secrets.randbelow",
})  # fmt: skip
"""Calls whose results have no reason to be equal on two ranks; none that fills a tensor, whose shape is."""


_FILES = frozenset({"exists", "isfile", "isdir", "is_file", "is_dir"})


def is_rank(node: ast.expr) -> bool:
    """True if an expression asks which rank this is."""
    match node:
        case ast.Subscript(slice=ast.Constant(value=str() as name)):
            return name in _VARIABLES
        case ast.Call():
            asked = next((a.value for a in node.args[:1] if isinstance(a, ast.Constant)), "")
            return asked in _VARIABLES or _is_name(dotted_name(node.func))
    return _is_name(dotted_name(node))


def asks_rank(node: ast.expr) -> bool:
    """True if an expression only reads the rank from the environment: `int(os.environ["RANK"])`."""
    return any(is_rank(each) for each in ast.walk(node) if isinstance(each, ast.Subscript | ast.Call))


def _is_name(name: str) -> bool:
    return _RANK.fullmatch(name.rpartition(".")[2]) is not None


def is_by_rank(made: Making) -> bool:
    """True if a statement is run, or not, by a test of the rank, or of a file that it may have."""
    program = made.scope.program
    if program is None or made.node not in program.code.parent:
        return False
    tests = [up.test for up in program.code.ancestors(made.node) if isinstance(up, ast.If)]
    return any(_is_own(node) for test in tests for node in ast.walk(test) if isinstance(node, ast.expr))


def _is_own(node: ast.expr) -> bool:
    asked = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FILES
    return asked or is_rank(node)


def differs_by_itself(node: ast.expr | None) -> bool:
    """True if an expression asks for chance, the clock or the host."""
    calls = (each for each in ast.walk(node) if isinstance(each, ast.Call)) if node is not None else ()
    return any(dotted_name(call.func) in _CHANCE for call in calls)
