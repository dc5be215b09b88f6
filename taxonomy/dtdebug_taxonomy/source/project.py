"""The other modules of a project: where a call's function is defined, found by the imports, without running anything.

Reading is left to the caller, who knows what may be read: an editor has texts that are not saved yet.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, TypeVar

from dtdebug_taxonomy.source.document import Config
from dtdebug_taxonomy.source.names import dotted
from dtdebug_taxonomy.source.python import Code
from dtdebug_taxonomy.source.syntax import FUNCTIONS, Function
from dtdebug_taxonomy.source.values import Valued

_UP = 6
"""So many folders above a file are looked in for the top of an absolute import."""
_FOLLOWED = 4
"""So many imports, or base classes, are followed one from the other."""
_MODULES = 256
"""Parsed modules that are kept."""
_LONGEST = 100_000
"""Characters beyond which a text is data, no configuration."""
_KNOWN = frozenset(sys.stdlib_module_names | {"torch", "numpy", "transformers", "accelerate", "deepspeed", "wandb"})
"""Packages that are no part of the user's project."""

T = TypeVar("T")
Definition = ast.ClassDef | Function


class Defined(NamedTuple):
    """A definition and the module that it is in."""

    code: Code
    node: Definition


class Project:
    """The modules around the files that are checked."""

    def __init__(self, text: Callable[[str], str | None]) -> None:
        """`text` gives what a file holds, by its path; None where there is none, or it may not be read."""
        self._text = lru_cache(maxsize=4096)(text)
        self._code = lru_cache(maxsize=_MODULES)(self._parsed)
        self._config = lru_cache(maxsize=_MODULES)(self._configured)
        self.consulted: set[str] = set()
        """The modules that have been read; whoever keeps results empties it before each file."""

    def noting(self, work: Callable[[], T]) -> tuple[T, set[str]]:
        """What some work comes to, and the modules that it has read: for those who keep the answer."""
        before, self.consulted = self.consulted, set()
        answer = work()
        read, self.consulted = self.consulted, before
        return answer, read

    def file(self, path: str) -> Code | None:
        """The program or module at a path, None where there is none."""
        found = self._code(path)
        if found is not None:
            self.consulted.add(found.path)
        return found

    def document(self, path: str) -> Config | None:
        """The configuration at a path; None where there is none, or it can't be read wholly."""
        found = self._config(path)
        if found is not None:
            self.consulted.add(path)
        return found

    def may_hold(self, code: Valued, func: ast.expr) -> bool:
        """Whether what is called can be in another module, or be a method: soon told, and false of most calls."""
        root = dotted(func).partition(".")[0]
        imported = code.imports.get(root)
        if imported is not None:
            return imported.partition(".")[0] not in _KNOWN
        return bool(root) and isinstance(func, ast.Attribute)

    def called(self, code: Code, call: ast.Call) -> Defined | None:
        """The function that a call means: of this file or another, or a method of an object whose class is told."""
        here = code.called(call)
        if here is not None:
            return Defined(code, here)
        func = call.func
        root = dotted(func).partition(".")[0]
        found = self._defined(code, code.name(func)) if root in code.imports else None
        if found is None and isinstance(func, ast.Attribute) and (home := self._class_of(code, func.value)) is not None:
            found = self._member(home, func.attr)
        return found if found is not None and isinstance(found.node, FUNCTIONS) else None

    def _class_of(self, code: Code, owner: ast.expr) -> Defined | None:
        """The class of an object: by the one call that makes it, or the annotation of the argument that it is."""
        made = code.made_by(owner) - {""}
        names = made or {
            n for b in code.bound(owner) if isinstance(b.node, ast.arg) and (n := _annotated(code, b.node))
        }
        found = self._defined(code, names.pop()) if len(names) == 1 else None
        return found if found is not None and isinstance(found.node, ast.ClassDef) else None

    def defined(self, code: Code, name: str) -> Defined | None:
        """What a qualified name means, in this file or another."""
        return self._defined(code, name)

    def _defined(self, code: Code, name: str, left: int = _FOLLOWED) -> Defined | None:
        """What a qualified name means, re-exports of packages followed."""
        if not name or not left:
            return None
        top, _, rest = name.partition(".")
        if top and (node := _at_top(code, top)) is not None:
            return self._inner(Defined(code, node), rest)
        module, parts = self.module(code, name)
        if module is None or not parts:
            return None
        if (node := _at_top(module, parts[0])) is not None:
            return self._inner(Defined(module, node), ".".join(parts[1:]))
        again = module.imports.get(parts[0])
        return self._defined(module, ".".join((again, *parts[1:])), left - 1) if again else None

    def _inner(self, outer: Defined, rest: str) -> Defined | None:
        if not rest:
            return outer
        return self._member(outer, rest) if "." not in rest else None

    def _member(self, home: Defined, name: str, left: int = _FOLLOWED) -> Defined | None:
        """A method of a class, or of the first base class that has it."""
        if not isinstance(home.node, ast.ClassDef) or not left:
            return None
        own = next((n for n in home.node.body if isinstance(n, FUNCTIONS) and n.name == name), None)
        if own is not None:
            return Defined(home.code, own)
        for base in home.node.bases:
            above = self._defined(home.code, home.code.name(base), left - 1)
            if above is not None and above.node is not home.node and (found := self._member(above, name, left - 1)):
                return found
        return None

    def module(self, code: Valued, name: str) -> tuple[Code | None, list[str]]:
        """The module that a qualified name begins with, and what is left of the name."""
        folders = code.path.replace("\\", "/").split("/")[:-1]
        dots = len(name) - len(name.lstrip("."))
        parts = name[dots:].split(".")
        if not all(p.isidentifier() for p in parts) or (not dots and parts[0] in _KNOWN):
            return None, []
        if dots:
            starts = [folders[: len(folders) - dots + 1]] if dots <= len(folders) + 1 else []
        else:
            starts = [folders[: len(folders) - up] for up in range(min(_UP, len(folders) + 1))]
        for start in starts:
            for length in range(len(parts) - 1, 0, -1):
                for tail in ((*parts[: length - 1], f"{parts[length - 1]}.py"), (*parts[:length], "__init__.py")):
                    module = self._code("/".join((*start, *tail)))
                    if module is not None and module.path != code.path:
                        self.consulted.add(module.path)
                        return module, parts[length:]
            if dots and (package := self._code("/".join((*start, "__init__.py")))) is not None:
                self.consulted.add(package.path)
                return (package, parts) if package.path != code.path else (None, [])
        return None, []

    def _configured(self, path: str) -> Config | None:
        text = self._text(path)
        if text is None or len(text) > _LONGEST:
            return None
        found = Config(text, path=path)
        return found if found.problem is None and len(found.roots) == 1 else None

    def _parsed(self, path: str) -> Code | None:
        text = self._text(path)
        if text is None:
            return None
        module = Code(text, path=path)
        module.project = self
        return module


def _at_top(code: Code, name: str) -> Definition | None:
    """What a module defines under a name at its top level; None where it does so more than once."""
    found = code.at_top.get(name, ())
    return found[0] if len(found) == 1 else None


def _annotated(code: Code, argument: ast.arg) -> str:
    """The class that an argument is said to be: `Plotter`, `"Plotter"`, `Optional[Plotter]`, `Plotter | None`."""
    node: ast.expr | None = argument.annotation
    if isinstance(node, ast.Subscript) and code.name(node.value) == "typing.Optional":
        node = node.slice
    if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant):
        node = node.left
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
        return code.imports.get(node.value, node.value)
    return code.name(node)
