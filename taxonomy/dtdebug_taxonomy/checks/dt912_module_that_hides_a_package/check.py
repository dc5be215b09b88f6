"""Programs named like a package: the program's folder comes first on the import path."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.shell.commands import Word
from dtdebug_taxonomy.source.shell.launch import launches
from dtdebug_taxonomy.source.shell.script import Script, script_of
from dtdebug_taxonomy.source.source import Source
from dtdebug_taxonomy.source.text import Span

_PACKAGES = frozenset(
    {
        *("torch", "torchvision", "torchaudio", "tensorflow", "keras", "jax", "horovod", "deepspeed", "accelerate"),
        *("transformers", "datasets", "lightning", "pytorch_lightning", "apex", "mpi4py", "numpy", "colossalai", "ray"),
    }
)
_NAMES = tuple(f"{p}.py" for p in _PACKAGES)
_LAST_PARTS = tuple(_PACKAGES)
_ENDING = re.compile(r"\.py")


def check(source: Source) -> Iterator[Hit]:
    """Report a program that is started by such a name, and one that imports its own name."""
    if isinstance(source, Code):
        yield from _itself(source)
    if not any(source.text.endswith(_LAST_PARTS, 0, m.start()) for m in _ENDING.finditer(source.text)):
        return
    script = script_of(source)
    for program in _programs(script) if script else ():
        package = program.text.rsplit("/", 1)[-1].removesuffix(".py")
        yield Hit(
            program.inner,
            f"Run this way, every `import {package}` finds this file and not the package {package}: "
            "the folder of the program comes first.",
        )


def _itself(code: Code) -> Iterator[Hit]:
    name = code.path.rsplit("/", 1)[-1]
    package = name.removesuffix(".py")
    if package not in _PACKAGES or package == name or not code.imports_any(package):
        return
    folders = code.path.split("/")[:-1]
    inside = package in folders or any(f and code.imports_any(f) for f in folders)  # started by `python -m`
    if inside or any(i.level for i in code.nodes(ast.ImportFrom)) or not _is_started(code):
        return  # a module of a package, possibly of that one
    imports = [*code.nodes(ast.Import), *code.nodes(ast.ImportFrom)]
    first = min(imports, key=lambda i: (not _is_of(i, package), i.lineno))
    yield Hit(code.span(first), f"This file is called {package}.py: started as a program it imports itself here.")


def _is_started(code: Code) -> bool:
    """True if it definitely is a program: it tests `__name__`, or parses arguments."""
    asks = any(isinstance(s.test, ast.Compare) and dotted_name(s.test.left) == "__name__" for s in code.nodes(ast.If))
    return asks or bool(code.calls("argparse.ArgumentParser"))


def _is_of(node: ast.Import | ast.ImportFrom, package: str) -> bool:
    names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    return any(n.partition(".")[0] == package for n in names) and not getattr(node, "level", 0)


def _programs(script: Script) -> Iterator[Word]:
    seen: set[Span] = set()
    for launch in launches(script):
        if launch.program is not None and launch.program.text.endswith(_NAMES):
            seen.add(launch.program.span)
            if launch.program.text.rsplit("/", 1)[-1] in _NAMES:
                yield launch.program
    for command in script.commands:
        if not command.name.startswith("python"):
            continue
        program = next((w for w in command.words[1:] if not w.text.startswith("-")), None)
        if program is not None and program.span not in seen and program.text.rsplit("/", 1)[-1] in _NAMES:
            options = [w.text for w in command.words[1 : command.words.index(program)]]
            if not {"-m", "-c"} & set(options):
                yield program
