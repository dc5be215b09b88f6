"""Checks the files of a workspace that are not open."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from lsprotocol import types
from pygls.uris import from_fs_path

from dtdebug_lsp.checking import problems
from dtdebug_lsp.configuration import Configuration
from dtdebug_lsp.diagnostics import diagnostic
from dtdebug_lsp.documents import LONGEST, Document
from dtdebug_lsp.modules import Modules
from dtdebug_lsp.positions import Positions
from dtdebug_taxonomy import named_files

_SKIPPED = frozenset(
    {"node_modules", "__pycache__", "site-packages", "venv", "env", "build", "dist", "wandb", "mlruns"}
)
"""Folders without the user's own text; hidden folders are skipped too."""
_NAMES = (".py", ".sh", ".bash", ".sbatch", ".slurm", ".json", ".jsonc", ".yaml", ".yml", ".env", ".txt", ".toml")
_MOST = 20_000
"""Maximum number of files of one workspace to check."""


def files(folders: Iterable[str]) -> list[Path]:
    """Return the files below some folders that checks can apply to."""
    found: list[Path] = []
    for folder in folders:
        for path, below, names in os.walk(folder):
            below[:] = sorted(b for b in below if b not in _SKIPPED and not b.startswith("."))
            found += [Path(path, n) for n in sorted(names) if _is_ours(n)]
            if len(found) >= _MOST:
                return found[:_MOST]
    return found


def _is_ours(name: str) -> bool:
    low = name.lower()
    return low.endswith(_NAMES) or low.startswith("dockerfile") or low.endswith("dockerfile")


def check(
    path: Path, configuration: Configuration, positions: Positions, modules: Modules
) -> tuple[str, list[types.Diagnostic]]:
    """Return the URI of a file and its diagnostics; no diagnostics if it can't be read."""
    uri = from_fs_path(str(path)) or ""
    try:
        if not configuration.is_enabled(str(path)):
            return uri, []
        text = named_files.read_file(path, LONGEST).decode("utf-8", "replace")
    except OSError:
        return uri, []
    document = Document(types.TextDocumentItem(uri, "", 0, text), modules=modules)
    found = list(_file_diagnostics(document, configuration, positions))
    document.forget()
    return uri, found


def _file_diagnostics(
    document: Document, configuration: Configuration, positions: Positions
) -> Iterator[types.Diagnostic]:
    for problem in problems(document, configuration.of(document.path)):
        yield diagnostic(problem, document, positions)
