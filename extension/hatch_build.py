"""Builds the JupyterLab extension for wheels and source distributions, if it is not built yet and npm is there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PLACE = "extension/jupyterlab"
_WITHOUT = "DTDEBUG_WITHOUT_JUPYTERLAB"


class Build(BuildHookInterface[Any]):
    """Without npm it warns and leaves the extension out: all else needs no Node. `make release` insists on it."""

    def dependencies(self) -> list[str]:
        """What the build itself needs: the builder, and what reads the knowledge."""
        return ["jupyter_builder", "msgspec>=0.19", "platformdirs>=4"] if self._npm() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds the extension unless it is there, not wanted, or cannot be built; never for an editable install."""
        if version == "editable" or self._is_built() or os.environ.get(_WITHOUT):
            return
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
