"""The other modules of a project: where a call's function is defined, by the imports, without running anything.

Reading is left to the caller, who knows what may be read: an editor has unsaved texts.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

from dtdebug_taxonomy.source.config.document import Config
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import root_name
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS, Function
from dtdebug_taxonomy.source.python.values import ValueIndex

_UP = 6
"""Number of folders above a file that are searched for the top of an absolute import."""
_FOLLOWED = 4
"""Maximum number of imports, or base classes, to follow in a row."""
_NESTED = 32
"""Maximum number of parts of a qualified name that is looked for in files."""
_CONFIGURATIONS = 256
"""Maximum number of configurations to keep."""
_KEPT = 4_000_000
"""Maximum number of characters of the modules that are kept parsed; a tree takes some 50 times as many bytes."""
_LONGEST = 100_000
"""Maximum number of characters of a configuration; a longer text is data."""
_KNOWN = frozenset(sys.stdlib_module_names | {"torch", "numpy", "transformers", "accelerate", "deepspeed", "wandb"})
"""Packages that are not part of the user's project."""

T = TypeVar("T")
Definition = ast.ClassDef | Function


class FoundDefinition(NamedTuple):
    """Definition with its module."""

    code: Code
    node: Definition


class Project:
    """The modules around the checked files."""

    def __init__(self, text: Callable[[str], str | None]) -> None:
        """Set the reader: `text` returns the content of a path, or None if it is missing or may not be read."""
        self._text = lru_cache(maxsize=4096)(text)
        self._modules: dict[str, Code | None] = {}
        """Parsed modules by path, the one that was asked for last at the end; None for what is no module."""
        self._kept = 0
        self._config = lru_cache(maxsize=_CONFIGURATIONS)(self._parse_config)
        self._place = lru_cache(maxsize=4096)(self._find_place)
        self.consulted: set[str] = set()
        """Modules that have been read; callers that cache results empty it before each file."""
        self._read_by: dict[str, set[str]] = {}
        """Module -> files that were read for what is known of it, which is not asked again for the next file."""

    def forget(self) -> None:
        """Drop all that is known of modules, so that each is read again."""
        self._modules, self._kept, self._read_by = {}, 0, {}
        for kept in (self._text, self._config, self._place):
            kept.cache_clear()

    def noting(self, work: Callable[[], T]) -> tuple[T, set[str]]:
        """Return the result of some work and the modules that it has read, for callers that cache the result."""
        before, self.consulted = self.consulted, set()
        answer = work()
        read, self.consulted = self.consulted, before
        return answer, read

    def read_so_far(self) -> set[str]:
        """Return the modules that have been read, and all files that what is known of them rests on."""
        found, todo = set(self.consulted), [*self.consulted]
        while todo:
            more = self._read_by.get(todo.pop(), set()) - found
            found |= more
            todo += more
        return found

    def file(self, path: str) -> Code | None:
        """Return the program or module at a path, or None."""
        found = self._code(path)
        if found is not None:
            self.consulted.add(found.path)
        return found

    def document(self, path: str, reader: str = "") -> Config | None:
        """Return the configuration at a path; None if there is none, or it can't be read completely.

        `reader` is the path of the module that reads it, if its result may be kept with that.
        """
        found = self._config(path)
        if found is not None:
            self.consulted.add(path)
            self._read_by.setdefault(reader, set()).add(path)
        return found

    def may_hold(self, code: ValueIndex, func: ast.expr) -> bool:
        """True if the called function may be in another module, or be a method; cheap, and false for most calls."""
        root = root_name(func)
        imported = code.imports.get(root)
        if imported is not None:
            return imported.partition(".")[0] not in _KNOWN
        return bool(root) and isinstance(func, ast.Attribute)

    def reaches(self, code: ValueIndex) -> bool:
        """True if a program imports a module of the project; cached with the program."""
        known: bool | None = code.__dict__.get("_reaches_project")
        if known is None:
            names = {n for n in code.imports.values() if n.partition(".")[0] not in _KNOWN}
            known = any(self.module(code, f"{name}._")[0] is not None for name in names)
            code.__dict__["_reaches_project"] = known
        return known

    def resolve_call(self, code: Code, call: ast.Call) -> FoundDefinition | None:
        """Return the function that a call refers to: of this file or another, or a method of a known class."""
        here = code.local_function(call)
        if here is not None:
            return FoundDefinition(code, here)
        func = call.func
        root = root_name(func)
        found = self._find_definition(code, code.name(func)) if root in code.imports else None
        if found is None and isinstance(func, ast.Attribute) and (home := self._class_of(code, func.value)) is not None:
            found = self._member(home, func.attr)
        return found if found is not None and isinstance(found.node, FUNCTIONS) else None

    def _class_of(self, code: Code, owner: ast.expr) -> FoundDefinition | None:
        """Return the class of an object: by the only call that creates it, or the annotation of its argument."""
        made = code.made_by(owner) - {""}
        names = made or {
            n for b in code.bound(owner) if isinstance(b.node, ast.arg) and (n := _annotated_class(code, b.node))
        }
        found = self._find_definition(code, names.pop()) if len(names) == 1 else None
        return found if found is not None and isinstance(found.node, ast.ClassDef) else None

    def find_definition(self, code: Code, name: str) -> FoundDefinition | None:
        """Return the definition of a qualified name, in this file or another, or None."""
        return self._find_definition(code, name)

    def _find_definition(self, code: Code, name: str, left: int = _FOLLOWED) -> FoundDefinition | None:
        """Return the definition of a qualified name, following re-exports of packages."""
        if not name or not left:
            return None
        top, _, rest = name.partition(".")
        if top and (node := _at_top(code, top)) is not None:
            return self._inner(FoundDefinition(code, node), rest)
        module, parts = self.module(code, name)
        if module is None or not parts:
            return None
        if (node := _at_top(module, parts[0])) is not None:
            return self._inner(FoundDefinition(module, node), ".".join(parts[1:]))
        again = module.imports.get(parts[0])
        return self._find_definition(module, ".".join((again, *parts[1:])), left - 1) if again else None

    def _inner(self, outer: FoundDefinition, rest: str) -> FoundDefinition | None:
        if not rest:
            return outer
        return self._member(outer, rest) if "." not in rest else None

    def _member(self, home: FoundDefinition, name: str, left: int = _FOLLOWED) -> FoundDefinition | None:
        """Return a method of a class, or of the first base class that has it."""
        if not isinstance(home.node, ast.ClassDef) or not left:
            return None
        home.code.results.note("functions", name)
        own = next((n for n in home.node.body if isinstance(n, FUNCTIONS) and n.name == name), None)
        if own is not None:
            return FoundDefinition(home.code, own)
        for base in home.node.bases:
            above = self._find_definition(home.code, home.code.name(base), left - 1)
            if above is not None and above.node is not home.node and (found := self._member(above, name, left - 1)):
                return found
        return None

    def module(self, code: ValueIndex, name: str) -> tuple[Code | None, list[str]]:
        """Return the module that a qualified name begins with, and the rest of the name."""
        path, rest = self._place(code.path, name)
        module = self._code(path) if path else None
        if module is not None:
            self.consulted.add(module.path)
            self._read_by.setdefault(code.path, set()).add(module.path)
        return (module, list(rest)) if module is not None and module.path != code.path else (None, [])

    def _find_place(self, path: str, name: str) -> tuple[str, Sequence[str]]:
        """Return the path of the module that a name in the file at a path begins with, and the rest of the name."""
        folders = path.replace("\\", "/").split("/")[:-1]
        dots = len(name) - len(name.lstrip("."))
        parts = name[dots:].split(".")
        if len(parts) > _NESTED or not all(p.isidentifier() for p in parts) or (not dots and parts[0] in _KNOWN):
            return "", ()
        if dots:
            starts = [folders[: len(folders) - dots + 1]] if dots <= len(folders) + 1 else []
        else:
            starts = [folders[: len(folders) - up] for up in range(min(_UP, len(folders) + 1))]
        for start in starts:
            for length in range(len(parts) - 1, 0, -1):
                for tail in ((*parts[: length - 1], f"{parts[length - 1]}.py"), (*parts[:length], "__init__.py")):
                    place = "/".join((*start, *tail))
                    if place != path and self._code(place) is not None:
                        return place, parts[length:]
            if dots and self._code(place := "/".join((*start, "__init__.py"))) is not None:
                return place, parts
        return "", ()

    def _parse_config(self, path: str) -> Config | None:
        text = self._text(path)
        if text is None or len(text) > _LONGEST:
            return None
        found = Config(text, path=path)
        return found if found.problem is None and len(found.roots) == 1 else None

    def _code(self, path: str) -> Code | None:
        """Return the module at a path; one that was not asked for lately is parsed again."""
        if path in self._modules:
            found = self._modules[path] = self._modules.pop(path)
            return found
        found = self._modules[path] = self._parse_code(path)
        self._kept += len(found.text) if found is not None else 0
        while self._kept > _KEPT and len(self._modules) > 1:
            oldest = self._modules.pop(next(iter(self._modules)))
            self._kept -= len(oldest.text) if oldest is not None else 0
        return found

    def _parse_code(self, path: str) -> Code | None:
        text = self._text(path)
        if text is None:
            return None
        module = Code(text, path=path)
        module.project = self
        return module


def _at_top(code: Code, name: str) -> Definition | None:
    """Return a module's top-level definition of a name; None if there is not exactly one."""
    code.results.note("at_top", name)
    found = code.at_top.get(name, ())
    return found[0] if len(found) == 1 else None


def _annotated_class(code: Code, argument: ast.arg) -> str:
    """Return the annotated class of an argument: `Plotter`, `"Plotter"`, `Optional[Plotter]`, `Plotter | None`."""
    node: ast.expr | None = argument.annotation
    if isinstance(node, ast.Subscript) and code.name(node.value) == "typing.Optional":
        node = node.slice
    if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant):
        node = node.left
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
        return code.imports.get(node.value, node.value)
    return code.name(node)
