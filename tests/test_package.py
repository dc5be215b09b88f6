"""The built wheel holds what is needed to run, and runs."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dtdebug_taxonomy.knowledge import HOME

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=120,
    )
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_three_packages_with_their_data(wheel):
    """Every knowledge file and lab, the type markers, the command; no test and no document."""
    names = set(zipfile.ZipFile(wheel).namelist())
    data = {f"dtdebug_taxonomy/{f.relative_to(HOME)}" for f in HOME.rglob("*") if f.suffix in (".toml", ".py")}

    assert data <= names
    assert {"dtdebug/py.typed", "dtdebug_taxonomy/py.typed", "dtdebug_lsp/__init__.py"} <= names
    assert {n.split("/")[0].split("-")[0] for n in names} == {"dtdebug", "dtdebug_lsp", "dtdebug_taxonomy"}


def test_the_wheel_holds_the_extension_of_jupyterlab(wheel):
    """A wheel that was built before the extension would silently lack it."""
    archive = zipfile.ZipFile(wheel)
    home = next(n for n in archive.namelist() if n.endswith("/labextensions/dtdebug/package.json")).removesuffix(
        "package.json"
    )
    entry = json.loads(archive.read(f"{home}package.json"))["jupyterlab"]["_build"]["load"]

    assert {f"{home}{name}" for name in ("install.json", "schemas/dtdebug/plugin.json", entry)} <= set(
        archive.namelist()
    )


def test_the_wheel_runs(wheel, tmp_path):
    """Unpacked elsewhere, it explains and diagnoses."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    script = (
        "import dtdebug, dtdebug.cli, sys; print(dtdebug.__file__); "
        "sys.exit(dtdebug.cli.main(['diagnose', '--situation', 'hvd.init() never returns on two nodes']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site"), "DTDEBUG_STATE": str(tmp_path / "state")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.stdout.startswith(str(tmp_path))
    assert "B.2" in done.stdout
    assert done.returncode == 1
