"""Conditions that let only some ranks pass: `if rank == 0:`, `if not is_main_process(): return`.

A test counts as one of rank if it compares something that is a rank (by its value, else by
its name) with a number, or asks for the main process. `rank != -1`, `rank is None` and
`world_size > 1` ask whether the run is distributed at all and are none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from dtdebug_taxonomy.source.bindings import leaves
from dtdebug_taxonomy.source.names import dotted
from dtdebug_taxonomy.source.python import Code, Function

_RANK_NAME = re.compile(
    r"^(global_?|world_?|dist_?|my_?|local_?|process_?|node_?|data_?)?(rank|rank_?id|process_?index|proc_?id|process_?id)$"
)
_LOCAL_NAME = re.compile(r"^(local_?rank|local_?process_?index|local_?rank_?id|gpu|gpu_?id|device_?id)$")
_GROUP_NAME = re.compile(r"^(?!local|global|world|node)\w+_rank$")
_RANK_CALLS = re.compile(
    r"(^|\.)(get_(global_|world_|local_|node_|data_parallel_|tensor_model_parallel_|pipeline_model_parallel_)?rank|(?:hvd|horovod\.[\w.]+)\.(local_)?rank|process_index|get_node_local_rank)$"
)
_MAIN = re.compile(
    r"^_?(is_?)?(global_?|local_?|world_?)?"
    r"(main|main_?process|master|master_?process|main_?proc|primary|rank_?(0|zero)|global_?zero|first_?rank|chief|coordinator|lead|leader|root_?process|main_?rank|master_?rank)"
    r"(_?(process|proc|rank|node|worker))?$"
)
_MAIN_CALL = re.compile(r"^_?(is|am|i_am|on)_", re.IGNORECASE)
_LOCAL_MAIN = re.compile(r"local", re.IGNORECASE)


class RankTest(NamedTuple):
    """What a condition says about the rank."""

    which: str
    """`global`, `local`, or the name of another rank (`tp_rank`)."""
    value: str
    """What it is compared with, as it is written: `0`, `< 4`, `world_size - 1`."""
    equal: bool
    """True where the condition holds for that value, False where it holds for the others."""

    @property
    def opposite(self) -> RankTest:
        """The test that holds where this one does not."""
        return self._replace(equal=not self.equal)


class Guard(NamedTuple):
    """A condition on the rank that a piece of code depends on."""

    test: RankTest
    node: ast.AST
    """The `if`, conditional expression or early return."""
    early: bool = False
    """It leaves before that code, rather than being around it."""


class Guards:
    """The rank conditions of one program."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self._tests: dict[int, RankTest | None] = {}

    def around(self, node: ast.AST, *, early: bool = True) -> list[Guard]:
        """The conditions on the rank under which a node runs within its function, innermost first."""
        return list(self._around(node, early))

    def _around(self, node: ast.AST, early: bool) -> Iterator[Guard]:
        inner = node
        for up in self.code.ancestors(node):
            if isinstance(inner, ast.stmt) and early:
                yield from self._left_before(inner)
            if isinstance(up, ast.If | ast.IfExp | ast.While) and inner is not up.test:
                test = self.test(up.test)
                if test is not None:
                    body = up.body if isinstance(up.body, list) else [up.body]
                    yield Guard(test if inner in body else test.opposite, up)
            elif isinstance(up, ast.BoolOp) and inner is not up.values[0]:
                for operand in up.values[: up.values.index(inner)]:  # type: ignore[arg-type]
                    if (test := self.test(operand)) is not None:
                        yield Guard(test if isinstance(up.op, ast.And) else test.opposite, up)
            if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
                return
            inner = up

    def _left_before(self, statement: ast.stmt) -> Iterator[Guard]:
        """Early returns: earlier statements of the same block after which only some ranks go on."""
        for earlier in self.code.block(statement):
            if earlier is statement:
                return
            if isinstance(earlier, ast.If) and (test := self.test(earlier.test)) is not None:
                if _goes(earlier.body) and not _goes(earlier.orelse):
                    yield Guard(test.opposite, earlier, early=True)
                elif _goes(earlier.orelse) and not _goes(earlier.body):
                    yield Guard(test, earlier, early=True)

    def test(self, node: ast.expr) -> RankTest | None:
        """What a condition says about the rank; None if it says nothing about it."""
        if id(node) not in self._tests:
            self._tests[id(node)] = None  # a name that is bound to itself ends here
            self._tests[id(node)] = self._test(node)
        return self._tests[id(node)]

    def _test(self, node: ast.expr, depth: int = 3) -> RankTest | None:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            found = self._test(node.operand, depth)
            return found.opposite if found else None
        if isinstance(node, ast.BoolOp):
            return next((t for v in node.values if (t := self._test(v, depth))), None)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._compare(node.left, node.ops[0], node.comparators[0])
        if isinstance(node, ast.Call):
            return self._call(node, depth)
        name = dotted(node)
        if not name:
            return None
        last = name.rsplit(".", 1)[-1]
        if _MAIN.match(last.lower()):
            return RankTest("local" if _LOCAL_MAIN.search(last) else "global", "0", True)
        if which := self.rank(node):
            return RankTest(which, "0", False)
        if depth:
            values = self.code.values(node)
            tests = [
                self._test(v, depth - 1) if isinstance(v, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Call) else None
                for v in values
            ]
            if tests and tests[0] and all(t == tests[0] for t in tests):
                return tests[0]
        return None

    def _call(self, call: ast.Call, depth: int) -> RankTest | None:
        last = (dotted(call.func) or "").rsplit(".", 1)[-1]
        if not last and isinstance(call.func, ast.Attribute):
            last = call.func.attr
        if _MAIN.match(last.lower()) and (_MAIN_CALL.match(last) or not call.args):
            return RankTest("local" if _LOCAL_MAIN.search(last) else "global", "0", True)
        if which := self.rank(call):
            return RankTest(which, "0", False)
        function = self.code.called(call)
        if function is not None and depth:
            returned = [r.value for r in self.code.inside(function, ast.Return) if r.value is not None]
            tests = [self._test(value, depth - 1) for value in returned]
            return next((t for t in tests if t), None)
        return None

    def _compare(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> RankTest | None:
        which = self.rank(left)
        if not which:
            which, left, right = self.rank(right), right, left
            op = _TURNED.get(type(op), type(op))()
        if not which or isinstance(op, ast.Is | ast.IsNot):
            return None
        if isinstance(op, ast.In | ast.NotIn):
            if isinstance(right, ast.Tuple | ast.List | ast.Set):
                values = sorted(v for e in right.elts if (v := self._number(e)) not in {"-1", ""})
                value = ",".join(values) if values else self.code.source_of(right)
            else:
                value = self.code.source_of(right)
            return RankTest(which, value, isinstance(op, ast.In))
        value = self._number(right) or self.code.source_of(right)
        if isinstance(op, ast.Eq | ast.NotEq):
            return None if value == "-1" else RankTest(which, value, isinstance(op, ast.Eq))
        if isinstance(op, ast.Gt) and value == "0":
            return RankTest(which, "0", False)
        if (isinstance(op, ast.Gt) and value == "-1") or (isinstance(op, ast.GtE) and value == "0"):
            return None
        if isinstance(op, ast.GtE) and value == "1":
            return RankTest(which, "0", False)
        if isinstance(op, ast.Lt) and value in {"0", "1"}:
            return None if value == "0" else RankTest(which, "0", True)
        if isinstance(op, ast.LtE) and value == "0":
            return RankTest(which, "0", True)
        if isinstance(op, ast.Lt | ast.GtE):
            if re.search(r"world_?size|num_replicas|n_?gpus", value):
                return None
            return RankTest(which, f"< {value}", isinstance(op, ast.Lt))
        return RankTest(which, f"<= {value}", isinstance(op, ast.LtE))

    def _number(self, node: ast.expr) -> str:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return f"-{node.operand.value!r}"
        value = self.code.constant(node)
        return str(value) if isinstance(value, int | str) else ""

    def rank(self, node: ast.expr) -> str:
        """Which rank an expression is (`global`, `local`, another's name); empty if it is none."""
        if isinstance(node, ast.Call):
            called = self.code.name(node.func)
            if called in {"int", "str"} and len(node.args) == 1:
                return self.rank(node.args[0])
            if called in {"os.environ.get", "os.getenv"} and node.args:
                return _VARIABLES.get(str(self.code.constant(node.args[0])), "")
            if called.endswith(("torch.distributed.get_rank", "get_rank")) and (node.args or node.keywords):
                return "group"
            found = _RANK_CALLS.search(called) or (
                _RANK_CALLS.search(node.func.attr) if isinstance(node.func, ast.Attribute) else None
            )
            if found:
                last = called.rsplit(".", 1)[-1] or "rank"
                return "local" if "local" in last else "group" if re.search(r"parallel|node_rank", last) else "global"
            return ""
        if isinstance(node, ast.Subscript) and self.code.name(node.value) == "os.environ":
            return _VARIABLES.get(str(self.code.constant(node.slice)), "")
        name = dotted(node)
        if not name:
            return ""
        last = name.rsplit(".", 1)[-1].lower()
        if last in {"gpu", "gpu_id", "device_id", "device"}:
            return "local" if last != "device" and self._is_number_like(node) else ""
        if _LOCAL_NAME.match(last):
            return "local"
        if _RANK_NAME.match(last):
            return "global"
        return last if _GROUP_NAME.match(last) else ""

    def _is_number_like(self, node: ast.expr) -> bool:
        """`gpu` is a rank where it is an argument or attribute, not a loop's item."""
        return all(b.how in {"argument", "assign"} for b in self.code.bound(node))

    def paired(self, node: ast.AST, same: list[ast.AST]) -> bool:
        """Whether one of the other places runs on just the ranks that do not come to this one.

        `if rank != 0: barrier()` and later `if rank == 0: barrier()`, or `if`/`else`: every rank
        calls it once.
        """
        function = self.code.function(node)
        mine = [g.test for g in self.around(node)]
        for other in same:
            if other is node or self.code.function(other) is not function:
                continue
            theirs = [g.test for g in self.around(other)]
            if any(t.opposite in theirs for t in mine) or (mine and not theirs and self._returns_between(node, other)):
                return True
        return False

    def _returns_between(self, node: ast.AST, other: ast.AST) -> bool:
        """`if rank == 0: barrier(); return` before an unguarded `barrier()`: the others come to that one."""
        for guard in self.around(node, early=False):
            if (
                isinstance(guard.node, ast.If)
                and _goes(guard.node.body)
                and self.code.order[other] > self.code.order[node]
            ):
                return True
        return False


_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE}
_VARIABLES = {
    "RANK": "global",
    "SLURM_PROCID": "global",
    "OMPI_COMM_WORLD_RANK": "global",
    "PMI_RANK": "global",
    "LOCAL_RANK": "local",
    "SLURM_LOCALID": "local",
    "OMPI_COMM_WORLD_LOCAL_RANK": "local",
    "MPI_LOCALRANKID": "local",
    "NODE_RANK": "node_rank",
    "GROUP_RANK": "node_rank",
}


def _goes(block: list[ast.stmt]) -> bool:
    """Whether a block leaves: return, continue, break, or the end of the program."""
    if not block:
        return False
    last = block[-1]
    if isinstance(last, ast.Raise):
        return False  # an error ends the rank; that is another story
    if leaves(block):
        return True
    return (
        isinstance(last, ast.Expr)
        and isinstance(last.value, ast.Call)
        and dotted(last.value.func) in {"sys.exit", "exit", "quit", "os._exit"}
    )


def guards(code: Code) -> Guards:
    """The rank conditions of a program, kept with it."""
    found: Guards | None = code.__dict__.get("_guards")
    if found is None:
        found = code.__dict__["_guards"] = Guards(code)
    return found


def calls_under(code: Code, function: Function) -> list[ast.Call]:
    """The calls that are in a function itself, not in one that it defines."""
    return [c for c in code.inside(function, ast.Call) if code.function(c) is function]
