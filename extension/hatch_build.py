"""Builds the index of the knowledge for wheels, and the JupyterLab extension if it is missing and npm is there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PLACE = "extension/jupyterlab"
_WITHOUT = "DTDEBUG_WITHOUT_JUPYTERLAB"


class Build(BuildHookInterface[Any]):
    """Without npm it warns and leaves the extension out: all else needs no Node. `make release` insists on it."""

    _index: tempfile.TemporaryDirectory[str] | None = None

    def dependencies(self) -> list[str]:
        """Return the packages that the build needs: to read the knowledge, and to build the extension."""
        builder = ["jupyter_builder"] if self._npm() else []
        return ["msgspec>=0.19", "platformdirs>=4", *builder] if builder or self.target_name == "wheel" else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds what is missing; nothing for an editable install, where the index is built when it is needed."""
        if version == "editable":
            return
        if not self._is_built() and not os.environ.get(_WITHOUT):
            self._build_extension()
        if self.target_name == "wheel":
            build_data["force_include"][self._build_index()] = "dtdebug_taxonomy/_index"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Removes the index that has been packed."""
        if self._index is not None:
            self._index.cleanup()

    def _build_index(self) -> str:
        self._index = tempfile.TemporaryDirectory()
        root = Path(self.root)
        paths = os.pathsep.join([str(root / "kernel"), str(root / "taxonomy"), *filter(None, sys.path)])
        script = [sys.executable, str(root / "extension" / "build_index.py"), self._index.name]
        subprocess.run(script, env={**os.environ, "PYTHONPATH": paths}, check=True)
        return self._index.name

    def _build_extension(self) -> None:
        npm = self._npm()
        if npm is None:
            self.app.display_warning(
                "dtdebug: npm not found, so this build has no JupyterLab extension (it needs Node 20); all else works"
            )
            return
        try:
            subprocess.run([sys.executable, "generate.py"], cwd=self._folder(), check=True)
            for words in (["ci", "--no-audit", "--no-fund", "--loglevel=error"], ["run", "--silent", "build"]):
                subprocess.run([npm, *words], cwd=self._folder(), check=True)
        except subprocess.CalledProcessError as error:
            raise SystemExit(
                f"dtdebug: the JupyterLab extension can't be built (see above); set {_WITHOUT}=1 to install without it"
            ) from error

    def _npm(self) -> str | None:
        """The npm that will build the extension; None if nothing is to be built or npm is missing."""
        return None if self._is_built() or os.environ.get(_WITHOUT) else shutil.which("npm")

    def _folder(self) -> Path:
        return Path(self.root) / _PLACE

    def _is_built(self) -> bool:
        return (self._folder() / "labextension" / "package.json").exists()
