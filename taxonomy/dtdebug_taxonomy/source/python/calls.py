"""Calls of a program: names through its imports, its functions, the calls of them, and their arguments."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property

from dtdebug_taxonomy.source.python.names import canonical, dotted_name
from dtdebug_taxonomy.source.python.results import Results, Tables
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS, Function, Syntax

_PLAIN = frozenset(
    {"staticmethod", "classmethod", "typing.override", "torch.no_grad", "torch.inference_mode", "torch.enable_grad"}
    | {"torch.autocast", "torch.cuda.amp.autocast", "torch.distributed.elastic.multiprocessing.errors.record"}
    | {"hydra.main", "draccus.wrap", "pyrallis.wrap", "click.command", "click.option", "click.argument"}
)
"""Decorators that change neither the callers of a function nor its result."""


class CallIndex(Syntax):
    """Program whose names, functions and calls are known."""

    def name(self, node: ast.AST | None) -> str:
        """Return the qualified name of an expression, resolved through the imports.

        `dist.barrier` is `torch.distributed.barrier` after `import torch.distributed as dist`. A root that is not
        imported stays as written (`self.model.save`); empty for anything but a chain of names.
        """
        if node is None:
            return ""
        known = self._names.get(node)
        if known is None:
            written = dotted_name(node)
            root, dot, rest = written.partition(".")
            known = canonical(f"{self.imports.get(root, root)}{dot}{rest}") if written else ""
            self._names[node] = known
        return known

    @cached_property
    def _names(self) -> dict[ast.AST, str]:
        """Requested expressions with their names; those of the former version hold while the imports are the same."""
        index = self._node_index
        if index.imports != self.imports:
            index.names, index.imports, index.tables = {}, self.imports, None  # results have read other names
        return index.names

    @cached_property
    def results(self) -> Results:
        """Results about nodes, also those of the former version that are still valid."""
        index = self._node_index
        is_alike = index.tables is not None and index.imports == self.imports and index.project is self.project
        former = index.results if is_alike else None
        tables, index.results = index.tables, {}
        return Results(former, lambda: tables.changed(self._tables_of_names()) if tables is not None else set())

    def _tables_of_names(self) -> Tables:
        raise NotImplementedError

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

    @property
    def calls_by_name(self) -> Mapping[str, Sequence[ast.Call]]:
        """Qualified name -> the calls of it, in the order of the program."""
        return self._calls[0]

    def calls(self, *names: str) -> list[ast.Call]:
        """Return calls by qualified name, in the order of the program."""
        by_name = self._calls[0]
        found = [c for n in names for c in by_name.get(n, ())]
        return sorted(found, key=self.order.__getitem__) if len(names) > 1 else found

    def methods(self, *names: str) -> list[ast.Call]:
        """Return calls of an attribute by the attribute's name: `methods("backward")`."""
        by_last = self._calls[1]
        found = [c for n in names for c in by_last.get(n, ())]
        return sorted(found, key=self.order.__getitem__) if len(names) > 1 else found

    def imports_any(self, *packages: str) -> bool:
        """True if anything of one of these packages is imported."""
        return any(n == p or n.startswith(p + ".") for n in self._imported_modules for p in packages)

    @cached_property
    def _imported_modules(self) -> frozenset[str]:
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

    def local_function(self, call: ast.Call) -> Function | None:
        """Return the only function of this file that a call, `f()` or `self.f()`, can refer to; None if unclear."""
        func = call.func
        if isinstance(func, ast.Name | ast.Attribute):
            self.results.note("functions", func.id if isinstance(func, ast.Name) else func.attr)
        if isinstance(func, ast.Name):
            found = [f for f in self.functions.get(func.id, ()) if not isinstance(self.parent.get(f), ast.ClassDef)]
        elif isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in {"self", "cls"}:
            home = self.class_of(call)
            found = [f for f in self.functions.get(func.attr, ()) if self.parent.get(f) is home]
        else:
            return None
        return found[0] if len(found) == 1 else None

    def returned_values(self, call: ast.Call) -> list[ast.expr]:
        """Return the expressions that a call of a function of this file can return; empty if unknown."""
        function = self.local_function(call)
        if function is None or isinstance(function, ast.AsyncFunctionDef) or not self.is_plain(function):
            return []
        known = self._node_index.returns
        found = known.get(function)
        if found is None:
            found = known[function] = [r for r in self.inside(function, ast.Return) if self.function(r) is function]
        values = [r.value for r in found if r.value is not None]
        return values if len(values) == len(found) else []

    def is_plain(self, function: Function) -> bool:
        """True if no decorator determines a function's callers, or changes its result."""
        called = (d.func if isinstance(d, ast.Call) else d for d in function.decorator_list)
        return all(self.name(d) in _PLAIN for d in called)

    @cached_property
    def callers(self) -> dict[Function, list[ast.Call]]:
        """Function of this file -> calls of it in this file."""
        found: dict[Function, list[ast.Call]] = defaultdict(list)
        for call in self.nodes(ast.Call):
            if (function := self.local_function(call)) is not None:
                found[function].append(call)
        return found

    def argument(self, call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
        """Return an argument by keyword or position; None if it is not given, or hidden by `*args`."""
        for keyword in call.keywords:
            if keyword.arg == name:
                return keyword.value
        if position is None or any(isinstance(a, ast.Starred) for a in call.args[: position + 1]):
            return None
        return call.args[position] if position < len(call.args) else None

    def has_unpacking(self, call: ast.Call) -> bool:
        """True if arguments are passed by `*args` or `**kwargs`, so that a missing one can't be seen."""
        return any(k.arg is None for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args)
