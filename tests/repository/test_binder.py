"""What Binder is told: the image's recipe, the packages, and the script that installs dtdebug from a checkout."""

import os
import re
import shutil
import stat
import subprocess
import sys
import time
import venv

import pytest
from places import ROOT

BINDER = ROOT / "binder"
BOUND = 300


def run(command, folder, environment=None):
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=BOUND, check=False
    )


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """What a clone has: without what is built here."""
    listed = run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], ROOT)
    if listed.returncode:
        pytest.skip("no git checkout")
    folder = tmp_path_factory.mktemp("binder") / "dtdebug"
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file() and not name.startswith("tests/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def test_repo2docker_makes_a_recipe_of_our_files(checkout):
    pytest.importorskip("repo2docker")
    made = run([sys.executable, "-m", "repo2docker", "--no-build", "--debug", "."], checkout)
    recipe = made.stdout + made.stderr
    assert made.returncode == 0, recipe[-2000:]
    assert "Building conda environment for python=3.11" in recipe
    for line in (
        'pip install --no-cache-dir -r "binder/requirements.txt"',
        "RUN ./binder/postBuild",
        'ENV R2D_ENTRYPOINT="${REPO_DIR}/binder/start"',
    ):
        assert line in recipe


def requirements():
    return [line for line in (BINDER / "requirements.txt").read_text().splitlines() if not line.startswith("#")]


def test_all_packages_are_pinned_and_torch_is_the_one_for_cpus():
    index, *packages = requirements()
    assert index == "--extra-index-url https://download.pytorch.org/whl/cpu"
    assert all(re.fullmatch(r"[\w.-]+==[\d.]+(\+cpu)?", package) for package in packages), packages
    assert ["torch"] == [p.partition("==")[0] for p in packages if p.endswith("+cpu")]


def test_the_packages_can_be_had(tmp_path):
    """Pins that do not go together, or that do not exist: from the index that this machine uses, where there is one."""
    plain = [package.removesuffix("+cpu") for package in requirements()[1:]]
    (tmp_path / "requirements.txt").write_text("\n".join(plain))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--retries=0", "--timeout=10"]
    if run([*pip, "download", "--no-deps", "--dest", str(tmp_path / "one"), plain[-1]], tmp_path).returncode:
        pytest.skip("no package index is reachable")
    options = ["install", "--dry-run", "--ignore-installed", "--only-binary=:all:", "--quiet"]
    resolved = run([*pip, *options, "-r", "requirements.txt"], tmp_path)
    assert resolved.returncode == 0, resolved.stderr[-2000:]


@pytest.mark.parametrize("name", ["postBuild", "start"])
def test_scripts_can_be_run(name):
    path = BINDER / name
    assert path.stat().st_mode & stat.S_IXUSR, f"{name} is not executable"
    checked = run(["bash", "-n", str(path)], ROOT)
    assert checked.returncode == 0, checked.stderr


def test_start_runs_what_it_is_given_with_one_thread_for_each_rank(tmp_path):
    started = run([str(BINDER / "start"), "sh", "-c", 'echo "$OMP_NUM_THREADS" "$1"', "-", "two words"], tmp_path)
    assert started.stdout == "1 two words\n", started.stderr


def test_post_build_installs_dtdebug_and_lays_out_the_notebooks(checkout, tmp_path):
    """In a new environment, without Node and without what this checkout has built."""
    venv.create(tmp_path / "venv", with_pip=True)
    tools = tmp_path / "venv" / "bin"
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV", "DTDEBUG"))}
    environment = kept | {"PATH": f"{tools}:/usr/bin:/bin", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    begin = time.monotonic()
    built = run([str(checkout / "binder" / "postBuild")], checkout, environment)
    print(f"\npostBuild took {time.monotonic() - begin:.0f} s")
    if "No matching distribution found for hatchling" in built.stderr:
        pytest.skip("no package index is reachable")
    assert built.returncode == 0, built.stderr[-2000:]
    names = sorted(path.name for path in (checkout / "learn").iterdir())
    assert ["01_first_failure.ipynb", "02_who_was_first.ipynb"] == names[:2]
    assert len(names) == 5
    loaded = "import IPython, ipywidgets, dtdebug; print(dtdebug.__file__)"
    where = run([str(tools / "python"), "-c", loaded], tmp_path, environment)
    assert str(tmp_path / "venv") in where.stdout, where.stderr
