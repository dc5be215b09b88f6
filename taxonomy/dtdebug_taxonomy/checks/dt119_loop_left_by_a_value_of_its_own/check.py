"""Training loops that each rank leaves by a value of its own part of the data."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.names import LOADER, SAMPLER
from dtdebug_taxonomy.checks.shared.stepping import agrees, synchronising_calls
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_TAKEN_OUT = ("item", "tolist")
_SPLITS = re.compile(r"split_by_node|split_dataset_by_node|DistributedSampler|\.shard\(|sampler\.set_epoch")
_DEEPEST = 6
_COUNTERS = 4
"""Maximum number of places to inspect at which a name is incremented."""


def check(code: Code) -> Iterator[Hit]:
    """Report the name by which the loop is left."""
    if code.role == "test" or not (code.calls(SAMPLER) or _SPLITS.search(code.text)):
        return
    known = guards(code)
    leaving = [c for c in code.nodes(ast.If) if isinstance(c.body[-1], ast.Break)]
    conditions = [c for c in leaving if not known.around(c, early=False) and not known.test(c.test)]
    loops = {
        a for t in (synchronising_calls(code) if conditions else ()) for a in code.ancestors(t) if isinstance(a, _LOOPS)
    }
    known_loops: dict[ast.AST, _Loop] = {}
    for condition in conditions:
        loop = next((a for a in code.ancestors(condition) if isinstance(a, _LOOPS)), None)
        if loop is None or loop not in loops:
            continue
        if loop not in known_loops:
            known_loops[loop] = _Loop(code, loop)
        if known_loops[loop].is_own(condition.test, _DEEPEST, set()):
            yield Hit(
                code.span(condition.test),
                "Each rank decides this by a value of its own part of the data, so some leave the loop and the "
                "others wait for them in the next step.",
            )


class _Loop:
    """Values in one loop: those passed to objects, and those sent to the other ranks."""

    def __init__(self, code: Code, loop: ast.AST) -> None:
        self.code, self.loop = code, loop
        self.told: dict[str, list[ast.Call]] = defaultdict(list)
        """Object -> calls that pass it values: `stopper(loss)` and `stopper.step(loss)` for `stopper`."""
        self.sent: set[str] = set()
        """Names passed to calls by which the ranks may agree, and the names that these are computed from."""
        for call in code.inside(loop, ast.Call):
            func = call.func.value if isinstance(call.func, ast.Attribute) else call.func
            if isinstance(func, ast.Name):
                self.told[func.id].append(call)
            if agrees(code, call):
                self.sent |= _names(code, *call.args, *(k.value for k in call.keywords))
        assigns = sorted(code.inside(loop, ast.Assign), key=code.order.__getitem__, reverse=True)
        for assign in assigns:
            if self.sent & {dotted_name(t) for t in assign.targets}:
                self.sent |= _names(code, assign.value)

    def is_own(self, node: ast.expr, left: int, seen: set[str]) -> bool:
        """True if a value comes from what only this rank computed in the loop, judging by names."""
        if not left or self._communicates(node):
            return False
        if isinstance(node, ast.Call) and self._takes_out(node):
            return True
        if not isinstance(node, ast.Name):
            parts = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
            return any(self.is_own(part, left, seen) for part in parts)
        if node.id in seen or node.id in self.sent:
            return False
        seen.add(node.id)
        values = self._values(node)
        return not any(map(self._communicates, values)) and any(
            v is not node and self.is_own(v, left - 1, seen) for v in values
        )

    def _values(self, node: ast.Name) -> list[ast.expr]:
        """Return the values that a name gets in the loop, and the arguments passed earlier to the object it names."""
        bound = self.code.bound(node)
        if any(isinstance(b.node, ast.AugAssign) for b in bound):
            bound = self.code.bindings.get((self.code.scope(node), node.id), bound)
        values: list[ast.expr] = []
        counters: list[ast.AugAssign] = []
        for binding in bound:
            value = binding.value
            if isinstance(binding.node, ast.AugAssign | ast.Assign) and value is None:
                value = binding.node.value  # one of several results
            if value is not None and self.loop in set(self.code.ancestors(binding.node)):
                values.append(value)
            if isinstance(binding.node, ast.AugAssign) and isinstance(binding.node.value, ast.Constant):
                counters.append(binding.node)
        for counter in counters[:_COUNTERS]:
            values += self._counted_by(counter)
        before = [c for c in self.told[node.id] if self.code.order[c] < self.code.order[node]]
        return values + [a for c in before for a in c.args]

    def _counted_by(self, counter: ast.AugAssign) -> Iterator[ast.expr]:
        """Yield the conditions under which a counter is incremented, if they use a value of this rank's data."""
        for up in self.code.ancestors(counter):
            if up is self.loop:
                return
            if isinstance(up, ast.If) and any(map(self._is_of_a_part, self.code.inside(up.test, ast.Name))):
                yield up.test

    def _is_of_a_part(self, name: ast.Name) -> bool:
        """True if a name is computed from a loader that gives each rank a part of the data."""
        for value in self.code.values(name):
            for given in value.args if isinstance(value, ast.Call) else ():
                loaders = self.code.values(given) if isinstance(given, ast.Name) else []
                for loader in loaders:
                    if not isinstance(loader, ast.Call) or self.code.name(loader.func) != LOADER:
                        continue
                    if self.code.is_made_by(self.code.argument(loader, "sampler", 3), SAMPLER):
                        return True
        return False

    def _takes_out(self, call: ast.Call) -> bool:
        """True if a call takes a number out of a tensor: `loss.item()`, or a local function that calls `item`."""
        if isinstance(call.func, ast.Attribute) and call.func.attr in _TAKEN_OUT:
            inner = call.func.value
            values = (v for v in self.code.values(inner) if v is not None)
            return dotted_name(inner) not in self.sent and not any(map(self._communicates, values))
        function = self.code.local_function(call)
        if function is None:
            return False
        taken = (c.func for c in self.code.inside(function, ast.Call))
        return any(isinstance(f, ast.Attribute) and f.attr == "item" for f in taken)

    def _communicates(self, node: ast.AST) -> bool:
        return any(agrees(self.code, c) for c in self.code.inside(node, ast.Call))


def _names(code: Code, *nodes: ast.expr) -> set[str]:
    return {dotted_name(n) for node in nodes for n in code.inside(node, ast.Name, ast.Attribute)} - {""}
