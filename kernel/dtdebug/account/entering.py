"""Functions of the program that a call enters, as scopes that are only read."""

from __future__ import annotations

import ast
import types
from typing import NamedTuple

from dtdebug.account.makers import entered_call, of_class
from dtdebug.account.scopes import Scope
from dtdebug.account.sources import Program, Sources
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS
from dtdebug_taxonomy.stacks.frames import is_library


def enter(call: ast.Call, scope: Scope, sources: Sources) -> Scope | None:
    """Return the function of the program that a call enters, or None."""
    if scope.program is None or not scope.user:
        return None
    function = scope.program.code.local_function(call)
    if function is not None:
        return entered_call(scope, function, call, scope)
    name = dotted_name(call.func)
    made = isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call)
    if isinstance(call.func, ast.Attribute) and (name or made):  # a method of an object of the program
        found = of_class(call.func.value, scope, sources)
        home, defined = found if found is not None else (None, None)
        if home is not None and defined is not None:
            for each in defined.body:
                if isinstance(each, FUNCTIONS) and each.name == call.func.attr:
                    return entered_call(home, each, call, scope)
    value = scope.value(call.func)
    if type(value) is types.FunctionType and not is_library(value.__code__.co_filename):
        return _of_code(value.__code__, call, scope, sources)
    imported = scope.program.code.imports.get(name.partition(".")[0], "")
    if not imported:
        return None
    whole = imported + name[len(name.partition(".")[0]) :]
    module, _, last = whole.rpartition(".")
    other = sources.of_module(module, scope.file) if module else None
    found_functions = other.code.functions.get(last, []) if other is not None else []
    if other is None or len(found_functions) != 1:
        return None
    home = Scope(other.file, found_functions[0].lineno, last, program=other, node=other.tree)
    return entered_call(home, found_functions[0], call, scope)


def _of_code(code: types.CodeType, call: ast.Call, scope: Scope, sources: Sources) -> Scope | None:
    """Return a function of the program by its code, such as one that was imported or decorated."""
    found = function_of_code(code, sources)
    if found is None:
        return None
    program, each = found
    home = Scope(program.file, each.lineno, each.name, program=program, node=program.tree)
    return entered_call(home, each, call, scope)


def function_of_code(
    code: types.CodeType, sources: Sources
) -> tuple[Program, ast.FunctionDef | ast.AsyncFunctionDef] | None:
    """Return a function of the program, with its file, by its code."""
    program = sources.of_user(code.co_filename)
    for each in program.code.functions.get(code.co_name, ()) if program is not None else ():
        if program is not None and code.co_firstlineno in (each.lineno, *(d.lineno for d in each.decorator_list)):
            return program, each
    return None


class Branches(NamedTuple):
    """The ways of a function that returns in each branch of one comparison, and goes off its end otherwise."""

    subject: ast.expr
    """Expression that each test compares with literals."""
    tests: tuple[ast.expr, ...]


def branches_without_else(node: ast.AST) -> Branches | None:
    """Return the branches of a function whose every return hangs on one expression; None for another function."""
    body = getattr(node, "body", None)
    if not isinstance(body, list) or not body or not isinstance(body[-1], ast.If):
        return None
    tests: list[ast.expr] = []
    for each in body:
        branch: ast.stmt | None = each
        while isinstance(branch, ast.If):
            if not isinstance(branch.body[-1], ast.Return | ast.Raise) or len(branch.orelse) > 1:
                return None
            tests.append(branch.test)
            branch = branch.orelse[0] if branch.orelse else None
        if tests and branch is not None:
            return None  # `else`, or a statement between the branches
    subjects = {
        ast.unparse(test.left): test.left for test in tests if isinstance(test, ast.Compare) and len(test.ops) == 1
    }
    alike = all(isinstance(t, ast.Compare) and isinstance(t.ops[0], ast.Eq | ast.In) for t in tests)
    return Branches(next(iter(subjects.values())), tuple(tests)) if alike and len(subjects) == 1 else None


_OF_RANK_0 = frozenset({"rank_zero_only", "main_process_only", "on_main_process", "master_only", "rank0_only"})


def none_around(entered: Scope) -> tuple[ast.AST, ast.expr | None] | None:
    """Return the line of a decorator that returns None for a function of the program, and the test over it.

    Without a test it is a library's decorator, which lets rank 0 alone enter.
    """
    program, node = entered.program, entered.node
    for decorator in node.decorator_list if program is not None and isinstance(node, FUNCTIONS) else ():
        bare = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = dotted_name(bare).rpartition(".")[2]
        own = program.code.functions.get(name, []) if program is not None else []
        if not own and name in _OF_RANK_0:
            return decorator, None
        for inner in ast.walk(own[0]) if len(own) == 1 else ():
            if isinstance(inner, FUNCTIONS) and inner is not own[0]:
                found = _none_in(inner)
                if found is not None:
                    return found
    return None


def _none_in(function: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[ast.AST, ast.expr] | None:
    """Return the line at which a function returns None where a test of it does not hold, and the test."""
    tests = [each for each in function.body if isinstance(each, ast.If)]
    if len(tests) != 1:
        return None
    for each in ast.walk(function):
        if isinstance(each, ast.Return) and (each.value is None or ast.unparse(each.value) == "None"):
            return each, tests[0].test
    return (tests[0], tests[0].test) if function.body[-1] is tests[0] and not tests[0].orelse else None
