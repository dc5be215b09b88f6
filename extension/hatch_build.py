"""Builds the index of the knowledge for wheels, and warns if they are built without the JupyterLab extension."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_EXTENSION = "extension/jupyterlab/labextension/package.json"


class Build(BuildHookInterface[Any]):
    """Needs no Node: `make lab` builds the extension, and `make release` insists on it."""

    _index: tempfile.TemporaryDirectory[str] | None = None

    def dependencies(self) -> list[str]:
        """Return the packages that the build needs: to read the knowledge."""
        return ["msgspec>=0.19", "platformdirs>=4"] if self.target_name == "wheel" else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds the index; nothing for an editable install, where the index is built when it is needed."""
        if version == "editable":
            return
        if not (Path(self.root) / _EXTENSION).exists():
            self.app.display_warning(
                "dtdebug: this build has no JupyterLab extension (in a clone, `make lab` builds it); all else works"
            )
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
