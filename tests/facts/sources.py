"""Where the tables of facts come from: packages that pip downloads, or the installed torch, read without importing."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
import tarfile
import zipfile
from functools import lru_cache
from pathlib import Path

_ANY_LINUX = [f"--platform=manylinux{p}_x86_64" for p in ("2014", "_2_18", "_2_27", "_2_28", "_2_34")]


def download(package: str, version: str, folder: Path, *, source: bool = False) -> Path:
    """The archive of one release; pip fetches it unless it already lies in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{package.replace('-', '_')}-{version}"
    kind = f"{stem}.tar.gz" if source else f"{stem}-*.whl"
    if not list(folder.glob(kind)):
        how = ["--no-binary=:all:"] if source else ["--only-binary=:all:", *_ANY_LINUX]
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
        subprocess.run([*pip, *how, "--dest", str(folder), f"{package}=={version}"], check=True, timeout=600)
    return next(folder.glob(kind))


def member(archive: Path, ending: str) -> bytes:
    """The one file of an archive whose path ends so (the shortest path, if several do)."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as z:
            return z.read(min((n for n in z.namelist() if f"/{n}".endswith(ending)), key=len))
    with tarfile.open(archive) as t:
        found = t.extractfile(min((n for n in t.getnames() if f"/{n}".endswith(ending)), key=len))
        assert found is not None
        return found.read()


def tree(archive: Path, ending: str) -> ast.Module:
    """A Python file of an archive, parsed."""
    return ast.parse(member(archive, ending))


@lru_cache(maxsize=1)
def torch_folder() -> Path:
    """The installed torch."""
    spec = importlib.util.find_spec("torch")
    assert spec is not None, "torch is not installed"
    assert spec.origin is not None
    return Path(spec.origin).parent


@lru_cache(maxsize=1)
def torch_version() -> str:
    """The version of the installed torch, as it names itself."""
    scope: dict[str, str] = {}
    for node in ast.parse((torch_folder() / "version.py").read_bytes()).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            scope.update({t.id: str(node.value.value) for t in node.targets if isinstance(t, ast.Name)})
    return scope["__version__"]


def literal(node: ast.expr | None, names: dict[str, object] | None = None) -> object:
    """A literal, or a known constant, by its value; None for everything else."""
    if isinstance(node, ast.Name):
        return (names or {}).get(node.id)
    try:
        return ast.literal_eval(node) if node is not None else None
    except ValueError:
        return None


def class_named(module: ast.Module, name: str) -> ast.ClassDef:
    """A class of a module."""
    return next(n for n in ast.walk(module) if isinstance(n, ast.ClassDef) and n.name == name)


def fields(cls: ast.ClassDef) -> dict[str, tuple[str, ast.expr | None]]:
    """The annotated fields of a class: annotation and default."""
    return {
        n.target.id: (ast.unparse(n.annotation), n.value)
        for n in cls.body
        if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
    }


def constants(module: ast.Module) -> dict[str, object]:
    """The constants of a module that are literals or other constants of it."""
    found: dict[str, object] = {}
    for n in module.body:
        if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name):
            known = literal(n.value, found)
            if known is not None or ast.unparse(n.value) == "None":
                found[n.targets[0].id] = known
    return found


def lifetimes(seen: dict[str, set[str]]) -> dict[str, dict[str, str]]:
    """For each name the first version that has it and the last; no `until` if the newest has it.

    The oldest version that was looked at is no `since`: the name may be older.
    """
    versions = list(seen)
    found = {}
    for name in sorted(set().union(*seen.values())):
        having = [v for v in versions if name in seen[v]]
        found[name] = {} if having[0] == versions[0] else {"since": having[0]}
        if having[-1] != versions[-1]:
            found[name]["until"] = having[-1]
    return found
