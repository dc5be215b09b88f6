"""environment.json: what frameworks, engines, networks and devices' runtimes read from the environment.

Names, where they are read, their types and defaults; no sentence of theirs is kept. Python packages are read as
they are installed or as pip downloads them, the rest from clones of their repositories below `FOLDER/clones`.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import re
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from sources import download, member
from ucx import ucx

Row = tuple[str, dict[str, str]]
"""A variable, and what is known about it: `where`, and maybe `default` and `type`."""

INSTALLED = {
    "torch": ("",), "accelerate": ("",), "deepspeed": ("",), "lightning": ("",),
    "ray": ("", "_raylet.so"),
}  # fmt: skip
"""Packages, and the files or folders of theirs that are read."""
WHEELS = {"sglang": "0.5.23", "torch_npu": "2.14.0", "torchft_nightly": "2026.10.26", "vllm": "0.33.0"}
_OTHERS = {"tests", "test", "examples", "testing", "thirdparty_files", "benchmarks", "rllib"}
"""Folders of a package whose variables are nobody's who trains."""
_NAME = re.compile(r"[A-Z][A-Z0-9]*(_[A-Za-z0-9]+)+$")
_READS = re.compile(
    r"(environ\.get|getenv|environ\.setdefault|env_\w+|\w*_from_env\w*|parse_\w*env\w*|get_\w*env\w*|\w*str_to_bool\w*)$"
)
_OWN = re.compile(rb"(?<=\0)(?:RAY|HCCL|TORCH_HCCL|TORCH_NPU|PYTORCH_NPU|NPU_ASD)_[A-Za-z0-9_]*[A-Za-z0-9](?=\0)")
"""Strings of a library that are variables of its project."""
_MAN = re.compile(r"^# [A-Z ]*(?:PARAMETERS|VARIABLES|CONTROL)[A-Z ]*\n(?P<body>(?:(?!# ).*\n?)*)", re.MULTILINE)
_LONGEST = 60
"""Characters of a default."""


def environment(folder: Path) -> dict[str, object]:
    """The table: variable -> where it is read, of what type it is, and its default."""
    found: dict[str, dict[str, str]] = {}
    sources = []
    for source, rows in _sources(folder):
        sources.append(source)
        for name, row in rows:
            found.setdefault(name, {k: v for k, v in row.items() if v and (k == "where" or len(v) <= _LONGEST)})
    return {"source": ", ".join(sources), "variables": dict(sorted(found.items()))}


def _sources(folder: Path) -> Iterator[tuple[str, Iterator[Row]]]:
    for package, places in INSTALLED.items():
        yield f"{package} {importlib.metadata.version(package)}", _installed(package, places)
    for package, version in WHEELS.items():
        wheel = download(package, version, folder)
        yield f"{package.removesuffix('_nightly')} {version}", _of_wheel[package](wheel)
    for project, reader in _of_clone.items():
        clone = folder / "clones" / project
        if not clone.is_dir():
            raise FileNotFoundError(f"{clone} is missing: git clone the project there")
        git = ["git", "-C", str(clone), "log", "-1", "--format=%cs"]
        day = subprocess.run(git, check=True, capture_output=True, text=True, timeout=60).stdout.strip()
        yield f"{project} {day}", ((n, row | {"where": f"{project}/{row['where']}"}) for n, row in reader(clone))


def _installed(package: str, places: tuple[str, ...]) -> Iterator[Row]:
    spec = importlib.util.find_spec(package)
    assert spec is not None, f"{package} is not installed"
    assert spec.origin is not None
    home = Path(spec.origin).parent
    for place in (home / p for p in places):
        where = str(place.relative_to(home.parent))
        if place.suffix == ".so":
            yield from _in_library(place.read_bytes(), where)
        for file in sorted(place.rglob("*.py")):
            parts = file.relative_to(home.parent)
            if not _OTHERS & set(parts.parts) and "benchmark" not in file.name:
                yield from _in_python(ast.parse(file.read_bytes()), str(parts), package.upper())


def _in_library(library: bytes, where: str) -> Iterator[Row]:
    for name in sorted({m.decode() for m in _OWN.findall(library)}):
        yield name, {"where": where}


def _in_python(tree: ast.Module, where: str, own: str) -> Iterator[Row]:
    """Names that a module takes from the environment, and constants of it that hold one of its project's names."""
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
            default = _plain(node.args[1]) if len(node.args) > 1 else ""
        elif isinstance(node, ast.Call):
            named = {k.arg: k.value for k in node.keywords}
            key = next((v for k, v in named.items() if k and k.startswith("env_name")), None)  # torch's Config(...)
            default = _plain(named.get("default")) if key else ""
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("environ"):
            key = node.slice
        name = key.value if isinstance(key, ast.Constant) else constants.get(getattr(key, "id", ""), "")
        if isinstance(name, str) and _NAME.match(name):
            yield name, {"where": where, "default": default}
    for name in constants.values():
        if name.startswith(f"{own}_") and _NAME.match(name):
            yield name, {"where": where}


def _plain(node: ast.expr | None) -> str:
    given = node.value if isinstance(node, ast.Constant) else None
    return "" if given is None else str(given)


def _vllm(wheel: Path) -> Iterator[Row]:
    """Its module declares each variable with type and default, and has a dictionary of all."""
    tree = ast.parse(member(wheel, "vllm/envs.py"))
    declared = {
        n.target.id: n for n in ast.walk(tree) if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
    }
    table = declared["environment_variables"].value
    assert isinstance(table, ast.Dict)
    for key in table.keys:
        name = _plain(key)
        row = declared.get(name)
        what = ast.unparse(row.annotation).removesuffix(" | None") if row else ""
        yield name, {"where": "vllm/envs.py", "type": what, "default": _plain(row.value) if row else ""}


def _sglang(wheel: Path) -> Iterator[Row]:
    """Fields of one class: `NAME = EnvBool(False)`."""
    kinds = {"EnvBool": "bool", "EnvInt": "int", "EnvFloat": "float", "EnvStr": "str", "EnvTuple": "list with commas"}
    where = "sglang/srt/environ.py"
    for node in ast.walk(ast.parse(member(wheel, where))):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name):
            made = ast.unparse(node.value.func)
            kind = made.removesuffix("WithAlias")
            if kind in kinds:
                default = _plain(node.value.args[0]) if node.value.args else ""
                yield node.targets[0].id, {"where": where, "type": kinds[kind], "default": default}
                for old in (_plain(k.value) for k in node.value.keywords if k.arg == "deprecated_name"):
                    yield old, {"where": where, "type": kinds[kind], "new": node.targets[0].id}


def _modules(wheel: Path, own: str, library: str = "") -> Iterator[Row]:
    """All modules of a wheel, and one library."""
    import zipfile

    with zipfile.ZipFile(wheel) as z:
        names = (
            n
            for n in z.namelist()
            if n.endswith(".py") and n.startswith(f"{wheel.name.partition('_nightly')[0].partition('-')[0]}/")
        )
        for name in sorted(n for n in names if not _OTHERS & set(Path(n).parts)):
            try:
                yield from _in_python(ast.parse(z.read(name)), name, own)
            except SyntaxError:  # a template
                continue
        if library:
            yield from _in_library(z.read(library), library)


def _libfabric(clone: Path) -> Iterator[Row]:
    """What the manual lists below a heading about the environment, and what its core defines."""
    for page in sorted((clone / "man").glob("*.md")):
        for section in _MAN.finditer(page.read_text(encoding="utf-8")):
            for names in re.findall(r"^[-*: ]*\*(FI_[A-Z0-9_/]+)\*", section["body"], re.MULTILINE):
                for name in names.split("/"):
                    yield (name if name.startswith("FI_") else f"FI_{name}"), {"where": f"man/{page.name}"}
    for file in sorted(clone.glob("src/*.c")):
        for name in re.findall(r'fi_param_define\(\s*NULL,\s*"(\w+)"', file.read_text(encoding="utf-8")):
            yield f"FI_{name.upper()}", {"where": f"src/{file.name}"}


def _macros(pattern: str, glob: str, prefix: str, clone: Path) -> Iterator[Row]:
    """Variables that a project defines by a macro of its own, with `name` and maybe `type` and `default`."""
    for file in sorted(p for p in clone.glob(glob) if p.is_file()):
        for found in re.finditer(pattern, file.read_text(encoding="utf-8", errors="replace")):
            row = {k: (v or "").strip().strip('"') for k, v in found.groupdict().items() if k != "name"}
            yield prefix + found["name"], {"where": str(file.relative_to(clone)), **row}


_of_wheel: dict[str, Callable[[Path], Iterator[Row]]] = {
    "sglang": _sglang,
    "torch_npu": partial(_modules, own="TORCH_NPU", library="torch_npu/lib/libtorch_npu.so"),
    "torchft_nightly": partial(_modules, own="TORCHFT"),
    "vllm": _vllm,
}
_of_clone: dict[str, Callable[[Path], Iterator[Row]]] = {
    "ucx": ucx,
    "libfabric": _libfabric,
    "aws-ofi-nccl": partial(
        _macros,
        r'OFI_NCCL_PARAM\w*\((?P<type>[^,"]+),\s*\w+,\s*"(?P<name>[A-Z0-9_]+)",\s*(?P<default>"[^"]*"|[^,;\n]+?)\)*\s*[,;\n]',
        "include/nccl_ofi_param.h",
        "OFI_NCCL_",
    ),
    "rccl": partial(
        _macros, r'RCCL_PARAM\(\w+,\s*"(?P<name>[A-Z0-9_]+)",\s*(?P<default>[^)\n]+)\)', "src/**/*", "RCCL_"
    ),
    "clr": partial(
        _macros,
        r'(?m)^(?:release|release_on_stg)\((?P<type>\w+),\s*(?P<name>[A-Z0-9_]+),\s*(?P<default>"[^"]*"|[\w.*-]+),',
        "rocclr/utils/flags.hpp",
        "",
    ),
    "ROCR-Runtime": partial(_macros, r'GetEnvVar\("(?P<name>[A-Z0-9_]+)"\)', "runtime/hsa-runtime/**/flag.h", ""),
    "MIOpen": partial(
        _macros, r"MIOPEN_DECLARE_ENV_VAR_(?P<type>[A-Z0-9]+)\((?P<name>MIOPEN_[A-Z0-9_]+)", "src/**/*.[ch]pp", ""
    ),
}
