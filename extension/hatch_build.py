"""Builds the extension of JupyterLab where a wheel or a source distribution needs it and it is not built yet."""

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
    """Never leaves it out in silence: without Node the build fails with what to do, unless the user wants none."""

    def dependencies(self) -> list[str]:
        """What the build itself needs: the builder, and what reads the knowledge."""
        return [] if self._is_built() else ["jupyter_builder", "msgspec>=0.19", "platformdirs>=4"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Ends the build where the extension is missing and can't be built: a traceback would bury what to do."""
        if version == "editable" or self._is_built() or os.environ.get(_WITHOUT):
            return
        npm = shutil.which("npm")
        if npm is None:
            raise SystemExit(
                "dtdebug: its JupyterLab extension is not built, and npm is not there to build it: install Node 20, "
                f"or set {_WITHOUT}=1 to install without it"
            )
        # what is there already leads to the packages that the build has been given
        paths = [str(Path(self.root) / "taxonomy"), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        subprocess.run([sys.executable, "generate.py"], cwd=self._folder(), env=environment, check=True)
        for words in (["ci", "--no-audit", "--no-fund", "--loglevel=error"], ["run", "--silent", "build"]):
            subprocess.run([npm, *words], cwd=self._folder(), check=True)

    def _folder(self) -> Path:
        return Path(self.root) / _PLACE

    def _is_built(self) -> bool:
        return (self._folder() / "labextension" / "package.json").exists()
