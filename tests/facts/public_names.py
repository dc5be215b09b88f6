"""public_names.json: the public names of the frameworks that are installed, read from their sources without importing.

What each takes, and what they read from the environment; no sentence of theirs is kept.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

MODULES = (
    *(
        "torch.distributed",
        "torch.distributed.algorithms.ddp_comm_hooks.default_hooks",
        "torch.distributed.nn.functional",
    ),
    *("torch.distributed.algorithms.join", "torch.distributed.algorithms.model_averaging.averagers"),
    *("torch.distributed.checkpoint", "torch.distributed.checkpoint.state_dict", "torch.distributed.device_mesh"),
    *("torch.distributed.elastic.agent.server", "torch.distributed.elastic.multiprocessing"),
    *("torch.distributed.elastic.multiprocessing.errors", "torch.distributed.elastic.rendezvous"),
    *("torch.distributed.fsdp", "torch.distributed.fsdp.wrap", "torch.distributed.launcher.api"),
    *("torch.distributed.optim", "torch.distributed.pipelining", "torch.distributed.pipelining.schedules"),
    *("torch.distributed.rpc", "torch.distributed.tensor", "torch.distributed.tensor.experimental"),
    *("torch.distributed.tensor.parallel", "torch.distributed._symmetric_memory", "torch.nn.parallel"),
    *("torch.utils.data.distributed", "torch.distributed.run"),
    *("accelerate", "accelerate.utils", "deepspeed", "deepspeed.zero", "deepspeed.pipe"),
    *("lightning.pytorch.strategies", "lightning.fabric", "lightning.fabric.strategies"),
    *("lightning.pytorch.plugins.environments", "ray.train", "ray.train.torch", "ray.train.lightning"),
)
_VARIABLES = {
    "torch": ("distributed",), "accelerate": ("",), "deepspeed": ("",), "lightning": ("",),
    "ray": ("train", "_private", "data", "tune"),
}  # fmt: skip
"""Packages, and the folders of theirs that are read for variables of the environment."""
_NAME = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+$")
_READS = re.compile(
    r"(environ\.get|getenv|environ\.setdefault|env_\w+|\w*_from_env\w*|parse_\w*env\w*|get_\w*env\w*|\w*str_to_bool\w*)$"
)
_MOST = 160
"""Characters of a signature."""


_OTHERS = {"tests", "test", "examples", "testing", "thirdparty_files"}
"""Folders of a package whose variables are nobody's who trains."""


def public_names() -> dict[str, object]:
    """The table: qualified name -> what it takes; variable -> where it is read, with its default."""
    packages = sorted({m.partition(".")[0] for m in MODULES})
    return {
        "source": ", ".join(f"{p} {importlib.metadata.version(p)}" for p in packages),
        "names": dict(sorted((f"{m}.{n}", row) for m in MODULES for n, row in _public(m))),
        "variables": dict(sorted(_variables())),
    }


def _public(module: str) -> Iterator[tuple[str, dict[str, str]]]:
    tree = _tree(module)
    if tree is None:
        return
    for name in _names(module):
        found = _definition(module, name)
        if found is None:
            continue
        home, node = found
        kind = "class" if isinstance(node, ast.ClassDef) else "function"
        yield name, {"kind": kind, "takes": _takes(home, node)}


def _names(module: str, left: int = 3) -> list[str]:
    """What a module exports: what it says itself, else what it defines and imports from its package."""
    tree, file = _tree(module), _file(module)
    if tree is None or file is None or not left:
        return []
    if exported := _exported(tree):
        return exported
    found = [n for n in _bound(tree, module.partition(".")[0]) if not n.startswith("_")]
    for node in _statements(tree):
        if isinstance(node, ast.ImportFrom) and any(a.name == "*" for a in node.names):
            found += _names(_origin(module, file, node), left - 1)
    return list(dict.fromkeys(n for n in found if n != "*"))


def _origin(module: str, file: Path, node: ast.ImportFrom) -> str:
    """The module that an import takes from."""
    parts = module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]
    base = parts[: len(parts) - node.level + 1] if node.level else []
    return ".".join([*base, *(node.module.split(".") if node.module else [])])


@cache
def _file(module: str) -> Path | None:
    top, _, rest = module.partition(".")
    spec = importlib.util.find_spec(top) if top in _VARIABLES else None
    if spec is None or spec.origin is None:
        return None
    base = Path(spec.origin).parent.joinpath(*rest.split(".")) if rest else Path(spec.origin).parent
    places = (base / "__init__.py", base.with_suffix(".py"), base.with_suffix(".pyi"))
    return next((p for p in places if p.is_file()), None)


@cache
def _tree(module: str) -> ast.Module | None:
    file = _file(module)
    return ast.parse(file.read_bytes()) if file else None


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Those of the module, and those in its conditions."""
    todo: list[ast.stmt] = list(reversed(tree.body))
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, ast.If | ast.Try):
            todo += [*reversed(getattr(node, "orelse", [])), *reversed(node.body)]


def _exported(tree: ast.Module) -> list[str]:
    found: list[str] = []
    for node in _statements(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        named = any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets if t)
        extends = (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and ast.unparse(node.value.func) in {"__all__.extend", "__all__.append"}
        )
        if named or extends:
            found += [c.value for c in ast.walk(node) if isinstance(c, ast.Constant) and isinstance(c.value, str)]
    return [n for n in dict.fromkeys(found) if n.isidentifier()]


def _bound(tree: ast.Module, own: str) -> list[str]:
    found: list[str] = []
    for node in _statements(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.append(node.name)
        elif isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").partition(".")[0] == own):
            found += [a.asname or a.name for a in node.names]
    return list(dict.fromkeys(found))


def _definition(module: str, name: str, left: int = 8) -> tuple[str, ast.ClassDef | ast.FunctionDef] | None:
    """Where a name comes from in the end, imports followed: the module and what it defines."""
    tree, file = _tree(module), _file(module)
    if tree is None or file is None or not left:
        return None
    for node in reversed(list(_statements(tree))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return module, node
        if not isinstance(node, ast.ImportFrom):
            continue
        for alias in node.names:
            if alias.name == "*" or name == (alias.asname or alias.name):
                found = _definition(_origin(module, file, node), name if alias.name == "*" else alias.name, left - 1)
                if found is not None:
                    return found
    return None


def _takes(module: str, node: ast.ClassDef | ast.FunctionDef, left: int = 4) -> str:
    """The arguments with their defaults, without their types; of a class those of the first base that says."""
    if isinstance(node, ast.ClassDef):
        made = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
        if made is not None:
            return _takes(module, made)
        if any("dataclass" in ast.unparse(d) for d in node.decorator_list):
            fields = (n.target for n in node.body if isinstance(n, ast.AnnAssign))
            return _cut([f.id for f in fields if isinstance(f, ast.Name)])
        bases = (_definition(module, ast.unparse(b).rpartition(".")[2]) for b in node.bases) if left else ()
        return next((t for found in bases if found and (t := _takes(*found, left - 1))), "")
    for argument in ast.walk(node.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    return _cut([p for p in ast.unparse(node.args).split(", ") if p not in {"self", "cls"}])


def _cut(parts: list[str]) -> str:
    text = ", ".join(parts)
    while len(text) > _MOST and parts:
        parts = parts[:-1]
        text = ", ".join([*parts, "..."])
    return f"({text})"


def _variables() -> Iterator[tuple[str, dict[str, str]]]:
    seen: set[str] = set()
    for package, folders in _VARIABLES.items():
        init = _file(package)
        for file in sorted(p for f in folders for p in ((init.parent / f).rglob("*.py") if init else ())):
            assert init is not None
            where = file.relative_to(init.parent.parent)
            if _OTHERS & set(where.parts) or "benchmark" in file.name:
                continue
            for name, default in _read_in(ast.parse(file.read_bytes())):
                if name not in seen:
                    seen.add(name)
                    yield name, {"where": str(where), **({"default": default} if default else {})}


def _read_in(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names that a module takes from the environment, constants that hold a name followed."""
    constants = {
        t.id: n.value.value
        for n in tree.body
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.Constant) and isinstance(n.value.value, str)
        for t in n.targets
        if isinstance(t, ast.Name)
    }
    for node in ast.walk(tree):
        key: ast.expr | None = None
        default = ""
        if isinstance(node, ast.Call) and node.args and _READS.search(ast.unparse(node.func)):
            key = node.args[0]
            given = node.args[1] if len(node.args) > 1 else None
            default = str(given.value) if isinstance(given, ast.Constant) and given.value is not None else ""
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("environ"):
            key = node.slice
        name = key.value if isinstance(key, ast.Constant) else constants.get(getattr(key, "id", ""), "")
        if isinstance(name, str) and _NAME.match(name):
            yield name, default
