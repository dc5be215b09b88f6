"""Summaries of the functions of a program, and the calls in which its ranks wait."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property

from dtdebug_taxonomy.checks.divergence.frame import Frame
from dtdebug_taxonomy.checks.divergence.memory import Memory, Outcome
from dtdebug_taxonomy.checks.divergence.origins import EQUAL, Callee, Value, is_unseeded, mix, seeds_by_rank
from dtdebug_taxonomy.checks.divergence.summaries import Decision, Program, Summary, replace_parameters
from dtdebug_taxonomy.checks.shared.stepping import synchronising_calls
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS, Function

_DEEPEST = 12
"""Maximum number of functions that are followed into one another."""
_LONGEST = 8
"""Maximum number of meetings of a function that are compared."""


class Interpreter:
    """Summaries of the functions of one program."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.waits = set(synchronising_calls(code))
        self._summaries: dict[ast.AST, Summary] = {}
        self.known_meetings: dict[ast.AST, tuple[str, ...]] = {}
        self._attributes: dict[ast.ClassDef, dict[str, Value]] = {}
        self._module: dict[str, Value] | None = None
        self._methods: dict[ast.ClassDef, dict[str, Function]] = {}
        self.depth = 0
        """Number of functions that are being interpreted, within one another."""
        self._memory = Memory(self)
        self._led: dict[ast.Call, tuple[str, ...]] = {}
        """Calls of a value, such as a lambda's name or an attribute -> the waiting calls that it leads to."""

    def of(self, code: Code) -> Interpreter:
        """Return the interpreter of another program of the project."""
        return self if code is self.code else interpreter(code)

    def summary(self, node: ast.AST) -> Summary:
        """Return the effects of a function, lambda or the module."""
        if node not in self._summaries:
            self._summaries[node] = Summary()  # stops at recursion
            if self.depth < _DEEPEST:
                self.depth += 1
                try:
                    self._summaries[node] = self._interpret(node).summary
                finally:
                    self.depth -= 1
        return self._summaries[node]

    def _interpret(self, node: ast.AST) -> Outcome:
        def work(home: Program) -> Outcome:
            frame = Frame(home, node)
            return Outcome(frame.run(), frame.env)

        return self._memory.interpret(node, work)

    def global_value(self, name: str) -> Value:
        """Return the value of a name of the module."""
        return self.globals().get(name, EQUAL)

    def globals(self) -> dict[str, Value]:
        """Return the values of the module's names."""
        if self._module is None:
            self._module = {}
            self._summaries[self.code.tree], self._module = self._interpret(self.code.tree)
        return self._module

    def method(self, home: ast.ClassDef, name: str) -> Function | None:
        """Return a method that a class itself defines."""
        if home not in self._methods:
            self._methods[home] = {m.name: m for m in reversed(home.body) if isinstance(m, FUNCTIONS)}
        return self._methods[home].get(name)

    def prepare(self, home: ast.ClassDef) -> None:
        """Find the values of a class's attributes."""
        self.attributes(home)

    def attribute(self, home: ast.ClassDef, name: str) -> Value:
        """Return the value of an attribute of a class."""
        return self.attributes(home).get(name, EQUAL)

    def attributes(self, home: ast.ClassDef) -> dict[str, Value]:
        """Return the values of a class's attributes, by all methods that set them."""
        if home not in self._attributes:
            self._attributes[home] = {}
            given = self._constructor_arguments(home)
            methods = [m for m in home.body if isinstance(m, FUNCTIONS)]
            for _ in range(2 if len(methods) > 1 else 1):  # what one method sets, another one may pass on
                found: dict[str, Value] = {}
                for method in methods:
                    for name, value in self._interpret(method).env.items():
                        if name.startswith("self.") and "." not in (attribute := name[5:]):
                            known = replace_parameters(value, given if method.name == "__init__" else {})
                            found[attribute] = found.get(attribute, EQUAL) | known
                self._attributes[home] = found
            for method in methods:
                self._summaries.pop(method, None)  # they were made before all attributes were known
        return self._attributes[home]

    def _constructor_arguments(self, home: ast.ClassDef) -> dict[str, Value]:
        """Return the values that calls in this file pass to a class's constructor."""
        init = self.method(home, "__init__")
        calls = self.code.calls(home.name) if init is not None else []
        names = [a.arg for a in init.args.args[1:]] if init is not None else []
        found: dict[str, Value] = {}
        for call in calls:
            frame = Frame(self, self.code.tree, quiet=True)
            for name, place in zip(names, range(len(names)), strict=True):
                argument = self.code.argument(call, name, place)
                if argument is not None and not (isinstance(argument, ast.Name) and argument.id == name):
                    value = Value(callees=frame.value(argument).callees)
                    found[name] = found.get(name, EQUAL) | value
        return found

    def meetings(self, node: ast.AST) -> tuple[str, ...]:
        """Return the names of the calls in a piece of code, or a function, in which the ranks wait, in order."""
        running = [] if node in self.known_meetings else [self.gather_meetings(node)]
        while running:  # calls lead on deeper than Python's own stack is
            needed = next(running[-1], None)
            if needed is None:
                running.pop()
            elif needed[1] not in needed[0].known_meetings:
                running.append(needed[0].gather_meetings(needed[1]))
        return self.known_meetings[node]

    def gather_meetings(self, node: ast.AST) -> Iterator[tuple[Interpreter, ast.AST]]:
        """Fill in the meetings of a piece of code; yields each function whose meetings it needs before it continues."""
        self.known_meetings[node] = ()  # stops at recursion
        found: list[str] = []
        for call in self.code.inside(node, ast.Call):
            if len(found) >= _LONGEST:
                break
            if call not in self._leading and call not in self._led:
                continue
            home = self.code.function(call)
            if home is not None and home is not node and node in set(self.code.ancestors(home)):
                continue  # in a function that is only defined here
            if not self._led.get(call) and call not in self.waits:
                for function in self.callees(call, elsewhere=False):
                    if isinstance(function, Callee) and not isinstance(function.node, ast.ClassDef):
                        yield self.of(function.code), function.node
            found += self.leads(call)
        self.known_meetings[node] = tuple(found[:_LONGEST])

    def meetings_of(self, block: list[ast.stmt]) -> tuple[str, ...]:
        """Return the names of the calls in a block in which the ranks wait, in order."""
        found = [n for s in block if not isinstance(s, (*FUNCTIONS, ast.ClassDef)) for n in self.meetings(s)]
        return tuple(found[:_LONGEST])

    def may_wait(self, node: ast.AST) -> bool:
        """True if a function may come to a waiting call, also by a value that holds a function."""
        if self.meetings(node):
            return True
        return any(
            (_is_by_value(self.code, c) and (guards(self.code).around(c) or _is_chosen(self.code, c)))
            or getattr(c.func, "attr", "") in self._waiting_methods
            for c in self._own_calls.get(node, ())
        )

    @cached_property
    def _own_calls(self) -> dict[ast.AST, list[ast.Call]]:
        """Function or module -> the calls in it that are not in a function within."""
        found: dict[ast.AST, list[ast.Call]] = {}
        for call in self.code.nodes(ast.Call):
            found.setdefault(self.code.function(call) or self.code.tree, []).append(call)
        return found

    @cached_property
    def _leading(self) -> set[ast.Call]:
        """Calls in which ranks wait, and those of functions of this file, which may lead to one."""
        return self.waits.union(*self.code.callers.values())

    @cached_property
    def _waiting_methods(self) -> set[str]:
        """Names of the methods in this file in which ranks wait, which an object's variable leads to."""
        methods = (f for f in self.code.all_functions if isinstance(self.code.parent.get(f), ast.ClassDef))
        return {f.name for f in methods if self.meetings(f)}

    def leads(self, call: ast.Call) -> tuple[str, ...]:
        """Return the names of the waiting calls that a call leads to, after its function has been interpreted."""
        return self._led.get(call) or self.met(call)

    def note(self, call: ast.Call, names: tuple[str, ...]) -> None:
        """Note to which waiting calls the call of a value leads."""
        self._led[call] = names
        for around in (call, *self.code.ancestors(call)):
            self.known_meetings.pop(around, None)

    def met(self, call: ast.Call, callee: Value | None = None) -> tuple[str, ...]:
        """Return the names of the waiting calls that one call leads to."""
        if call in self.waits:
            return (self.code.name(call.func).rpartition(".")[2] or getattr(call.func, "attr", "wait"),)
        found: tuple[str, ...] = ()
        for function in self.callees(call, elsewhere=False) if callee is None else callee.callees:
            if isinstance(function, str):
                found = found or (function,)
            elif not isinstance(function.node, ast.ClassDef):
                found = found or self.of(function.code).meetings(function.node)
        return found

    def seeds_by_rank(self) -> bool:
        """True if the program seeds each rank differently."""
        return self._is_seeded_by_rank

    @cached_property
    def _is_seeded_by_rank(self) -> bool:
        return seeds_by_rank(self.code)

    def is_unseeded(self) -> bool:
        """True if each rank draws its own numbers."""
        return self._is_unseeded

    @cached_property
    def _is_unseeded(self) -> bool:
        return is_unseeded(self.code)

    def callees(self, call: ast.Call, *, elsewhere: bool = True) -> Iterable[Callee | str]:
        """Return the functions that a call may refer to, by its scope and the project; empty if unknown."""
        key = "callees", call, elsewhere
        return self.code.results.get(key, lambda: tuple(self._find_callees(call, elsewhere=elsewhere)))

    def _find_callees(self, call: ast.Call, *, elsewhere: bool) -> Iterable[Callee | str]:
        code = self.code
        here = code.local_function(call)
        if here is not None:
            return (Callee(code, here, code.class_of(here)),) if code.is_plain(here) else ()
        if elsewhere and code.project is not None and code.project.may_hold(code, call.func):
            found = code.project.resolve_call(code, call)
            if found is not None and not isinstance(found.node, ast.ClassDef):
                return (Callee(found.code, found.node, found.code.class_of(found.node)),)
        return ()


def _is_by_value(code: Code, call: ast.Call) -> bool:
    """True if a call is of a variable or attribute that may hold a function."""
    func = call.func.value if isinstance(call.func, ast.Subscript) else call.func
    if isinstance(func, ast.Name):
        return func.id not in code.imports and any(b.how in {"assign", "argument"} for b in code.bound(func))
    return isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self"


def _is_chosen(code: Code, call: ast.Call) -> bool:
    """True if a call is of a name that holds one of several functions."""
    return isinstance(call.func, ast.Name) and any(isinstance(v, ast.IfExp) for v in code.values(call.func))


def interpreter(code: Code) -> Interpreter:
    """Return the summaries of a program, kept with it."""
    found: Interpreter | None = code.__dict__.get("_interpreter")
    if found is None:
        found = code.__dict__["_interpreter"] = Interpreter(code)
    return found


def all_decisions(code: Code) -> Iterator[Decision]:
    """Yield the decisions of the functions in which ranks wait, each once, with all that is known of their values."""
    home = interpreter(code)
    if not home.waits and not code.imports_any("torch.distributed"):
        return
    found: dict[ast.AST, Decision] = {}
    for node in (code.tree, *code.all_functions):
        if not home.may_wait(node):
            continue
        if isinstance(node, ast.Module):
            home.globals()
        elif (owner := code.parent.get(node)) and isinstance(owner, ast.ClassDef):
            home.attributes(owner)
        for decision in home.summary(node).decisions:
            known = found.get(decision.node)
            value = decision.value if known is None else mix(known.value, decision.value)
            found[decision.node] = decision._replace(value=value)
    yield from sorted(found.values(), key=lambda d: code.order[d.node])
