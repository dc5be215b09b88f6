"""public_names.json: the public names of frameworks and what they take, read from their sources without importing.

No sentence of theirs is kept.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from sources import download

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
    *("lightning.pytorch", "lightning.pytorch.callbacks", "lightning.pytorch.loggers", "lightning.pytorch.profilers"),
    *("lightning.pytorch.utilities", "lightning.pytorch.cli", "lightning.pytorch.plugins.environments"),
    *("accelerate.hooks", "accelerate.logging", "accelerate.state", "deepspeed.moe.layer", "deepspeed.moe.utils"),
    *("deepspeed.ops.adam", "deepspeed.utils", "deepspeed.checkpointing", "deepspeed.monitor.monitor"),
    *("deepspeed.runtime.pipe.topology", "torch.distributed.tensor.debug", "torch.distributed.nn"),
    *("ray.train", "ray.train.torch", "ray.train.lightning"),
)
WALKED = ("torch.distributed", "torchft")
"""Packages of which all modules are read that say what they export, or define."""
ELSEWHERE = (
    *(
        "deepspeed.comm.comm",
        "deepspeed.runtime.engine",
        "deepspeed.runtime.activation_checkpointing.checkpointing",
        "deepspeed.runtime.utils",
        "deepspeed.runtime.zero.partition_parameters",
        "deepspeed.utils.zero_to_fp32",
        "megatron.core.parallel_state",
        "torch.distributed._symmetric_memory",
    ),
    *("monarch", "monarch.actor", "monarch.config", "monarch.gradient", "monarch.job", "monarch.rdma", "monarch.spmd"),
    *("monarch.tools", "ray.train.huggingface.transformers", "ray.train.tensorflow"),
    *(f"lightning.pytorch.strategies.{m}" for m in ("ddp", "deepspeed", "fsdp", "model_parallel", "single_xla", "xla")),
)
WHEELS = {"megatron_core": "0.16.1", "torchft_nightly": "2026.10.26", "torchmonarch": "0.7.0"}
"""What is read as pip downloads it."""
_IMPORTED = {"megatron_core": "megatron", "torchft_nightly": "torchft", "torchmonarch": "monarch"}
_HOMES: dict[str, Path] = {}
"""Folder of each package."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_MOST = 160
"""Characters of a signature."""


_OTHERS = {"testing", "test", "tests", "examples", "benchmarks", "launcher", "nn"}
"""Folders that nobody imports from."""


def public_names(folder: Path) -> dict[str, object]:
    """The table: qualified name -> what it takes; class -> its methods."""
    installed = sorted({m.partition(".")[0] for m in MODULES})
    _HOMES.update(
        {p: Path(spec.origin).parent for p in installed if (spec := importlib.util.find_spec(p)) and spec.origin}
    )
    for package, version in WHEELS.items():
        with zipfile.ZipFile(download(package, version, folder)) as z:
            z.extractall(folder / "wheels", [n for n in z.namelist() if n.endswith((".py", ".pyi"))])
        _HOMES[_IMPORTED[package]] = folder / "wheels" / _IMPORTED[package]
    names = {f"{m}.{n}": row for m in MODULES for n, row in _public(m)}
    known = {(name.partition(".")[0], name.rpartition(".")[2]) for name in names}
    elsewhere: dict[str, dict[str, str]] = {}
    for module in (*ELSEWHERE, *(m for package in WALKED for m in _walked(package))):
        top = module.partition(".")[0]
        for name, row in _public(module, own=True):
            if (top, name) not in known:
                known.add((top, name))
                elsewhere[f"{module}.{name}"] = row
    classes = {name: row for name, row in (names | elsewhere).items() if row["kind"] == "class"}
    methods = {name: found for name in classes if (found := dict(_methods(*name.rpartition(".")[::2])))}
    versions = {p: importlib.metadata.version(p) for p in installed} | {_IMPORTED[p]: v for p, v in WHEELS.items()}
    return {
        "source": ", ".join(f"{p} {v}" for p, v in versions.items()),
        "names": dict(sorted(names.items())),
        "elsewhere": dict(sorted(elsewhere.items())),
        "methods": dict(sorted(methods.items())),
    }


def _walked(package: str) -> Iterator[str]:
    """Modules of a package that are public by their path, the shortest first."""
    top, *rest = package.split(".")
    home = _HOMES[top].joinpath(*rest)
    files = sorted(home.rglob("*.py"), key=lambda p: (len(p.parts), p))
    for file in files:
        parts = file.relative_to(_HOMES[top].parent).with_suffix("").parts
        if not _OTHERS & set(parts) and not any(p.startswith("_") or p.endswith("_test") for p in parts):
            yield ".".join(parts)


def _methods(module: str, name: str) -> Iterator[tuple[str, str]]:
    """Public methods and properties that a class itself defines, sorted; a property takes nothing."""
    found = _definition(module, name)
    if found is None or not isinstance(found[1], ast.ClassDef):
        return
    home, node = found
    for method in sorted(
        (n for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)), key=lambda n: n.name
    ):
        if not method.name.startswith("_") and method.name != "forward":
            is_property = any(
                "property" in ast.unparse(d) or ".setter" in ast.unparse(d) for d in method.decorator_list
            )
            yield method.name, "" if is_property else _takes(home, method)


def _public(module: str, *, own: bool = False) -> Iterator[tuple[str, dict[str, str]]]:
    """Names with what they take; only its own of a module that does not say what it exports, if `own`."""
    tree = _tree(module)
    if tree is None:
        return
    own = own and not _exported(tree)
    for name in _names(module):
        found = _definition(module, name)
        if found is None or (own and found[0] != module):
            continue
        home, node = found
        made = "class" if isinstance(node, ast.ClassDef) else "function"
        yield name, {"kind": made, "takes": _takes(home, node)}


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
    if top not in _HOMES:
        return None
    base = _HOMES[top].joinpath(*rest.split(".")) if rest else _HOMES[top]
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
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.append(node.name)
        elif isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").partition(".")[0] == own):
            found += [a.asname or a.name for a in node.names]
    return list(dict.fromkeys(found))


def _definition(module: str, name: str, left: int = 8) -> tuple[str, ast.ClassDef | _Function] | None:
    """Where a name comes from in the end, imports followed: the module and what it defines."""
    tree, file = _tree(module), _file(module)
    if tree is None or file is None or not left:
        return None
    for node in reversed(list(_statements(tree))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return module, node
        if not isinstance(node, ast.ImportFrom):
            continue
        for alias in node.names:
            if alias.name == "*" or name == (alias.asname or alias.name):
                found = _definition(_origin(module, file, node), name if alias.name == "*" else alias.name, left - 1)
                if found is not None:
                    return found
    return None


def _takes(module: str, node: ast.ClassDef | _Function, left: int = 4) -> str:
    """The arguments with their defaults, without their types; of a class those of the first base that says."""
    if isinstance(node, ast.ClassDef):
        made = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
        if made is not None:
            return _takes(module, made)
        if any("dataclass" in ast.unparse(d) for d in node.decorator_list):
            fields = (n for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name))
            return _cut([text for field in fields if (text := _field(field))])
        bases = (_definition(module, ast.unparse(b).rpartition(".")[2]) for b in node.bases) if left else ()
        return next((t for found in bases if found and (t := _takes(*found, left - 1))), "")
    for argument in ast.walk(node.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    return _cut([p for p in ast.unparse(node.args).split(", ") if p not in {"self", "cls"}])


def _field(field: ast.AnnAssign) -> str:
    """Return a field of a dataclass as a parameter with its default; empty for one that is not passed."""
    name, value = ast.unparse(field.target), field.value
    if isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] == "field":
        given = {k.arg: ast.unparse(k.value) for k in value.keywords}
        if given.get("init") == "False":
            return ""
        made = f"{given['default_factory']}()" if "default_factory" in given else ""
        default = given.get("default", "[]" if made == "list()" else "{}" if made == "dict()" else made)
    else:
        default = ast.unparse(value) if value is not None else ""
    return f"{name}={default}" if default else name


def _cut(parts: list[str]) -> str:
    text = ", ".join(parts)
    while len(text) > _MOST and parts:
        parts = parts[:-1]
        text = ", ".join([*parts, "..."])
    return f"({text})"
