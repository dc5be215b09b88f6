"""Dotted names of our modules, wherever they are written, are names that exist."""

import ast
import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

from places import ROOT

DOTTED = re.compile(r"(?<![\w/.@-])(?:dtdebug|dtdebug_taxonomy|dtdebug_lsp)(?:\.(?!__)[A-Za-z_]\w*)+")
OTHERS = re.compile(
    r"dtdebug\.(?:dev|local|git|toml|json|yaml|log|txt|js|vsix|css|ts|tsx|told|explain|symptoms|interpreter|readthedocs|extension\.js)\b"
    r"|dtdebug\.[a-z]+(?:[A-Z]\w*)+"
)
"""Names that only look like modules: files, host names, commands and settings of editors."""
READ = (".py", ".toml", ".md", ".cfg", ".json", ".yaml", ".yml")
SKIPPED = re.compile(
    r"^(?:CHANGELOG|benchmarks/log/|tests/(?:samples|cases|goldens|faults/programs)/|extension/(?!.*\.py$)"
    r"|taxonomy/dtdebug_taxonomy/(?:labs|schema)/|docs/images/|.*package(?:-lock)?\.json)"
)
ROOTS = {"dtdebug": "kernel", "dtdebug_taxonomy": "taxonomy", "dtdebug_lsp": "lsp"}


def texts():
    """Yield (file, text) of what may name a module."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        path = ROOT / name
        if name.endswith(READ) and not SKIPPED.search(name) and path.is_file():
            yield name, path.read_text(encoding="utf-8", errors="replace")


def defined(module: Path) -> set[str]:
    """The names that a module binds at its top."""
    names = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(a.asname or a.name).partition(".")[0] for a in node.names}
    return names


def resolves(dotted: str) -> bool:
    """True if a name is a module, or something that a module binds."""
    root, *parts = dotted.split(".")
    place = ROOT / ROOTS[root] / root
    while parts:
        if (place / parts[0]).is_dir():
            place, parts = place / parts[0], parts[1:]
            continue
        module = place / f"{parts[0]}.py"
        if module.is_file():
            return len(parts) == 1 or parts[1] in defined(module)
        init = place / "__init__.py"
        return init.is_file() and (parts[0] in defined(init) or f'"{parts[0]}"' in init.read_text(encoding="utf-8"))
    return True


def test_each_dotted_name_resolves():
    """In code, strings, documents and configuration."""
    missing = [
        f"{name}: {found[0]}"
        for name, text in texts()
        if name != "tests/repository/test_dotted_names.py"
        for found in DOTTED.finditer(text)
        if not OTHERS.match(found[0]) and not resolves(found[0])
    ]

    assert sorted(set(missing)) == []


def test_a_name_that_is_gone_is_noticed():
    """The test itself can fail."""
    assert find_spec("dtdebug") is not None
    assert not resolves("dtdebug.no_such_module")
    assert not resolves("dtdebug_taxonomy.no_such.module")
