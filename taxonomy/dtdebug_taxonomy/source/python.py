"""A Python program, parsed and indexed once for all checks: its names, arguments and values.

A check asks for what it is about and pays for that only.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from dtdebug_taxonomy.source.names import canonical, dotted
from dtdebug_taxonomy.source.source import Variable
from dtdebug_taxonomy.source.syntax import FUNCTIONS, Function, Syntax

if TYPE_CHECKING:
    from dtdebug_taxonomy.source.project import Project
    from dtdebug_taxonomy.source.shell import Script

Role = Literal["program", "library", "test"]

_TESTS = re.compile(r"(^|/)(tests?|testing)/|(^|/)(test_[^/]*|[^/]*_test|conftest)\.py$")
KEEPS = frozenset({"to", "cuda", "cpu", "train", "eval", "half", "float", "bfloat16", "double", "requires_grad_"})
"""Methods of a module that return the module itself."""
_INSTALLED = re.compile(r"(^|/)(site|dist)-packages/")
_TRAINING = (
    *("torch.nn.parallel.", "torch.utils.data.", "torch.optim.", "torch.distributed.", "deepspeed.initialize"),
    *("horovod.", "accelerate.Accelerator", "pytorch_lightning.Trainer", "argparse.ArgumentParser"),
)


class Binding(NamedTuple):
    """A name or `self.attribute` that gets a value."""

    node: ast.AST
    """The statement, argument or import that binds it."""
    value: ast.expr | None
    """What it is bound to; None where that is not one expression."""
    how: Literal["assign", "loop", "with", "argument", "import", "definition", "other"]


class Code(Syntax):
    """A parsed Python program."""

    kind = "python"

    def __init__(self, text: str, *, path: str = "", notebook: bool = False) -> None:
        super().__init__(text, path=path)
        self.notebook = notebook
        """Cells of a notebook, joined."""
        self.project: Project | None = None
        """The modules around it, where they may be read."""

    # -- names ----------------------------------------------------------------------------------

    def name(self, node: ast.AST | None) -> str:
        """The qualified name of an expression through the imports: `dist.barrier` -> `torch.distributed.barrier`.

        A root that is not imported stays as it is written (`self.model.save`); empty for what
        is no chain of names.
        """
        written = dotted(node)
        if not written:
            return ""
        root, dot, rest = written.partition(".")
        return canonical(f"{self.imports.get(root, root)}{dot}{rest}")

    @cached_property
    def _calls(self) -> tuple[dict[str, list[ast.Call]], dict[str, list[ast.Call]]]:
        by_name: dict[str, list[ast.Call]] = defaultdict(list)
        by_last: dict[str, list[ast.Call]] = defaultdict(list)
        for call in self.nodes(ast.Call):
            name = self.name(call.func)
            if name:
                by_name[name].append(call)
            if isinstance(call.func, ast.Attribute):
                by_last[call.func.attr].append(call)
        return by_name, by_last

    def calls(self, *names: str) -> list[ast.Call]:
        """Calls by qualified name, in the order of the program."""
        by_name = self._calls[0]
        found = [c for n in names for c in by_name.get(n, ())]
        return sorted(found, key=self.order.__getitem__) if len(names) > 1 else found

    def methods(self, *names: str) -> list[ast.Call]:
        """Calls of something's attribute by that attribute's name: `methods("backward")`."""
        by_last = self._calls[1]
        found = [c for n in names for c in by_last.get(n, ())]
        return sorted(found, key=self.order.__getitem__) if len(names) > 1 else found

    def imports_any(self, *packages: str) -> bool:
        """Whether something of one of these packages is imported."""
        return any(n == p or n.startswith(p + ".") for n in self._imported for p in packages)

    @cached_property
    def _imported(self) -> frozenset[str]:
        names = {alias.name for node in self.nodes(ast.Import) for alias in node.names}
        return frozenset(names | {node.module or "" for node in self.nodes(ast.ImportFrom) if not node.level})

    @property
    def all_functions(self) -> list[Function]:
        """All functions and methods of this file."""
        return [*self.nodes(ast.FunctionDef), *self.nodes(ast.AsyncFunctionDef)]

    @cached_property
    def functions(self) -> dict[str, list[Function]]:
        """Functions and methods of this file by name."""
        found: dict[str, list[Function]] = defaultdict(list)
        for node in self.all_functions:
            found[node.name].append(node)
        return found

    @cached_property
    def at_top(self) -> dict[str, list[ast.ClassDef | Function]]:
        """Classes and functions at the top level of this file by name."""
        found: dict[str, list[ast.ClassDef | Function]] = defaultdict(list)
        for node in self.tree.body:
            if isinstance(node, (ast.ClassDef, *FUNCTIONS)):
                found[node.name].append(node)
        return found

    def called(self, call: ast.Call) -> Function | None:
        """The function of this file that a call means: `f()` or `self.f()`; None unless there is just one."""
        func = call.func
        if isinstance(func, ast.Name):
            found = [f for f in self.functions.get(func.id, ()) if not isinstance(self.parent.get(f), ast.ClassDef)]
        elif isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in {"self", "cls"}:
            home = self.class_of(call)
            found = [f for f in self.functions.get(func.attr, ()) if self.parent.get(f) is home]
        else:
            return None
        return found[0] if len(found) == 1 else None

    def returned(self, call: ast.Call) -> list[ast.expr]:
        """What the function of this file that a call means can return; empty where that can't be told."""
        function = self.called(call)
        if function is None or isinstance(function, ast.AsyncFunctionDef) or function.decorator_list:
            return []
        found = [r for r in self.inside(function, ast.Return) if self.function(r) is function]
        values = [r.value for r in found if r.value is not None]
        return values if len(values) == len(found) else []

    @cached_property
    def callers(self) -> dict[Function, list[ast.Call]]:
        """Function of this file -> calls of it in this file."""
        found: dict[Function, list[ast.Call]] = defaultdict(list)
        for call in self.nodes(ast.Call):
            if (function := self.called(call)) is not None:
                found[function].append(call)
        return found

    # -- arguments and values -------------------------------------------------------------------

    def argument(self, call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
        """An argument by keyword or position; None where it is not given, or hidden by `*args`."""
        for keyword in call.keywords:
            if keyword.arg == name:
                return keyword.value
        if position is None or any(isinstance(a, ast.Starred) for a in call.args[: position + 1]):
            return None
        return call.args[position] if position < len(call.args) else None

    def has_unpacking(self, call: ast.Call) -> bool:
        """Whether arguments come by `*args` or `**kwargs`, so that a missing one can't be seen."""
        return any(k.arg is None for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args)

    @cached_property
    def bindings(self) -> dict[tuple[ast.AST, str], list[Binding]]:
        """(scope, name or `self.attribute`) -> what it is bound to, in the order of the program."""
        from dtdebug_taxonomy.source.bindings import bindings

        return bindings(self)

    def bound(self, node: ast.expr) -> list[Binding]:
        """The bindings that a name or `self.attribute` can have where it stands.

        Those that come before it in its own scope, the last one that is surely passed and what
        may come after that; else all of the nearest scope around that has any.
        """
        from dtdebug_taxonomy.source.bindings import reaching

        return reaching(self, node)

    def values(self, node: ast.expr | None) -> list[ast.expr | None]:
        """The expressions that a name can stand for here, one step back; the node itself if it is no name.

        None stands for a value that can't be told, such as an argument that nothing in this file gives.
        """
        if node is None or not dotted(node):
            return [node]
        found = [b.value if b.how == "assign" else None for b in self.bound(node)]
        return found or [None]

    def made_by(self, node: ast.expr | None, depth: int = 4) -> set[str]:
        """Qualified names of the calls that make the possible values of an expression.

        "" is among them where a value is made otherwise or can't be told. Assignments are
        followed, and methods that return the module itself (`.to()`, `.cuda()`, `.eval()`).
        """
        made: set[str] = set()
        todo: list[tuple[ast.expr | None, int]] = [(node, depth)]
        while todo:
            value, left = todo.pop()
            if isinstance(value, ast.Call):
                func = value.func
                if isinstance(func, ast.Attribute) and func.attr in KEEPS and left:
                    todo.append((func.value, left - 1))
                elif left and (returned := self.returned(value)):
                    todo += [(v, left - 1) for v in returned]
                else:
                    made.add(self.name(func))
            elif isinstance(value, ast.IfExp) and left:
                todo += [(value.body, left - 1), (value.orelse, left - 1)]
            elif value is not None and left and dotted(value):
                todo += [(v, left - 1) for v in self.values(value) if v is not value]
            else:
                made.add("")
        return made

    def is_made_by(self, node: ast.expr | None, *names: str) -> bool:
        """Whether every possible value of an expression is made by one of these calls."""
        made = self.made_by(node)
        return bool(made) and made <= set(names)

    def constant(self, node: ast.expr | None) -> object:
        """The constant that an expression is, a simple assignment followed; None if it is none."""
        for _ in range(3):
            if isinstance(node, ast.Constant):
                return node.value
            if node is None or not dotted(node):
                return None
            values = self.values(node)
            if len(values) != 1:
                return None
            node = values[0]
        return None

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The environment variables that the program sets, for itself or what it starts, and those it reads."""
        from dtdebug_taxonomy.source.environment import program_variables

        return program_variables(self)

    @cached_property
    def script(self) -> Script:
        """The commands that the program starts, as shell text or lists of words."""
        from dtdebug_taxonomy.source.environment import started_commands

        return started_commands(self)

    # -- what kind of file ------------------------------------------------------------------------

    @cached_property
    def role(self) -> Role:
        """A program is started, a library imported: the absence of something tells only in a program."""
        if _TESTS.search(self.path):
            return "test"
        if self.notebook:
            return "program"
        return "program" if any(_runs(s) or self._trains(s) for s in self.tree.body) else "library"

    @cached_property
    def in_package(self) -> bool:
        """Whether the file is part of a package that others import: installed, or with relative imports."""
        return bool(_INSTALLED.search(self.path)) or any(name.startswith(".") for name in self.imports.values())

    def _trains(self, statement: ast.stmt) -> bool:
        """A statement of a module that makes what only training needs; a library does that in functions."""
        value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        return isinstance(value, ast.Call) and self.name(value.func).startswith(_TRAINING)


def _runs(statement: ast.stmt) -> bool:
    """A statement of a module that does something when the module is run."""
    if isinstance(statement, ast.If):
        test = statement.test
        if isinstance(test, ast.Compare) and dotted(test.left) == "__name__":
            return True
        return any(_runs(s) for s in (*statement.body, *statement.orelse))
    if isinstance(statement, ast.For | ast.While | ast.With):
        return True
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Call | ast.Await)
    return False
