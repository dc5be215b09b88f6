"""Python program, parsed and indexed once for all checks: its names, arguments and values.

Each check triggers, and pays for, only the indices that it uses.
"""

from __future__ import annotations

import ast
import re
from functools import cached_property
from typing import Literal

from dtdebug_taxonomy.source.python.config_values import configured_value
from dtdebug_taxonomy.source.python.environment import program_variables, started_commands
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.values import ValueIndex
from dtdebug_taxonomy.source.shell.script import Holder, Script
from dtdebug_taxonomy.source.source import Variable

Role = Literal["program", "library", "test"]

_TESTS = re.compile(r"(^|/)(tests?|testing)/|(^|/)(test_[^/]*|[^/]*_test|conftest)\.py$")
_INSTALLED = re.compile(r"(^|/)(site|dist)-packages/")
_TRAINING = (
    *("torch.nn.parallel.", "torch.utils.data.", "torch.optim.", "torch.distributed.", "deepspeed.initialize"),
    *("horovod.", "accelerate.Accelerator", "pytorch_lightning.Trainer", "argparse.ArgumentParser"),
)


class Code(ValueIndex, Holder):
    """Parsed Python program."""

    kind = "python"

    in_step = False
    """True for a part of a program that is said to average gradients over ranks, where it does not show how."""

    def __init__(self, text: str, *, path: str = "", notebook: bool = False) -> None:
        super().__init__(text, path=path)
        self.notebook = notebook
        """True for the joined cells of a notebook."""

    def constant(self, node: ast.expr | None) -> object:
        """Return the constant value of an expression, through assignments or a configuration that the program names."""
        found = super().constant(node)
        if found is None and (known := configured_value(self, node)) is not None:
            return known.value
        return found

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Environment variables that the program sets, for itself or its children, and those it reads."""
        return program_variables(self, self.script)

    @cached_property
    def script(self) -> Script:
        """Commands that the program starts, as shell text or lists of words."""
        return started_commands(self)

    @cached_property
    def role(self) -> Role:
        """A program is started, a library imported: a missing element means something only in a program."""
        if _TESTS.search(self.path):
            return "test"
        if self.notebook:
            return "program"
        return "program" if any(_runs(s) or self._trains(s) for s in self.tree.body) else "library"

    @cached_property
    def in_package(self) -> bool:
        """True if others import it from a package: it is installed, or has relative imports and trains nothing."""
        if _INSTALLED.search(self.path):
            return True
        return any(name.startswith(".") for name in self.imports.values()) and not self.trains

    @cached_property
    def trains(self) -> bool:
        """True if one of its functions performs a training step: backward, and the optimizer's step."""
        homes = {self.function(call) for call in self.methods("backward")} - {None}
        return any(self.function(call) in homes for call in self.methods("step"))

    def _trains(self, statement: ast.stmt) -> bool:
        """True for a module-level statement that creates what only training needs; a library does that in functions."""
        value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        return isinstance(value, ast.Call) and self.name(value.func).startswith(_TRAINING)


def _runs(statement: ast.stmt) -> bool:
    """True for a module-level statement that does something when the module is run."""
    if isinstance(statement, ast.If):
        test = statement.test
        if isinstance(test, ast.Compare) and dotted_name(test.left) == "__name__":
            return True
        return any(_runs(s) for s in (*statement.body, *statement.orelse))
    if isinstance(statement, ast.For | ast.While | ast.With):
        return True
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Call | ast.Await)
    return False
