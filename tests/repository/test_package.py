"""The built wheel holds what is needed to run, and runs."""

import importlib.util
import json
import os
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path, PurePosixPath

import pytest
from packaging.requirements import Requirement
from places import ROOT

import dtdebug
import dtdebug_taxonomy
from dtdebug_taxonomy.knowledge.loader import HOME

KERNEL = Path(dtdebug.__file__).parent
LAB = ROOT / "extension" / "jupyterlab" / "labextension" / "package.json"


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
    """Every knowledge file, lab, guide and notebook, the type markers, the command; no test, example or document."""
    names = set(zipfile.ZipFile(wheel).namelist())
    examples = {*HOME.glob("checks/*/*_[0-9]*"), *HOME.glob("checks/*/run.py")}
    data = {f for f in HOME.rglob("*") if f.suffix in (".toml", ".py", ".md")}
    assert len(examples) > 500
    assert set() == names & {f"dtdebug_taxonomy/{f.relative_to(HOME)}" for f in examples}
    data = {f"dtdebug_taxonomy/{f.relative_to(HOME)}" for f in data - examples}
    data |= {f"dtdebug/{f.relative_to(KERNEL)}" for kind in ("toml", "ipynb") for f in KERNEL.rglob(f"*.{kind}")}

    assert set() == data - names
    assert {"dtdebug/py.typed", "dtdebug_taxonomy/py.typed", "dtdebug_lsp/__init__.py"} <= names
    assert {n.split("/")[0].split("-")[0] for n in names} == {"dtdebug", "dtdebug_lsp", "dtdebug_taxonomy"}


def test_the_wheel_holds_the_index_of_its_knowledge(wheel, tmp_path):
    """As it is computed from the files; what reads the knowledge finds all of it there."""
    archive = zipfile.ZipFile(wheel)
    path = os.pathsep.join(str(ROOT / name) for name in ("kernel", "taxonomy"))
    subprocess.run(
        [sys.executable, str(ROOT / "extension" / "build_index.py"), str(tmp_path / "index")],
        env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "7"},
        check=True,
        timeout=60,
    )
    held = {n: archive.read(n) for n in archive.namelist() if n.startswith("dtdebug_taxonomy/_index/")}
    assert held == {f"dtdebug_taxonomy/_index/{p.name}": p.read_bytes() for p in (tmp_path / "index").iterdir()}
    assert len(held) == 10

    archive.extractall(tmp_path / "site")
    held = {p for p in (tmp_path / "site").rglob("*") if "__pycache__" not in p.parts}
    script = """
from dtdebug.privacy.boundary import diagnose
from dtdebug.privacy.redact import secret_names as kinds, token_shapes as looks
from dtdebug_taxonomy import checks
from dtdebug_taxonomy.knowledge import cache as kept
from dtdebug_taxonomy.knowledge import loader as knowledge
from dtdebug_taxonomy.text import matchers as lexicon
from dtdebug_taxonomy.text import similarity
from dtdebug_taxonomy.model.snapshot import Snapshot
def indexed(name, kind, make, *sources):
    return kept.kept(name, kind, lambda: exit(f"{name} is computed"), *sources)
for module in (checks, knowledge, lexicon, similarity, kinds, looks):
    module.kept = indexed
checks.load()
print(diagnose(knowledge.load(), Snapshot(situation="hvd.init() never returns on two nodes", output="xoxb-1 hangs")))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site"), "DTDEBUG_STATE": str(tmp_path / "state")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    assert "RankedSymptom(code='B.2'" in done.stdout
    assert held == {p for p in (tmp_path / "site").rglob("*") if "__pycache__" not in p.parts}


@pytest.mark.skipif(not LAB.exists(), reason="not built here: `make lab`")
def test_the_wheel_holds_the_extension_of_jupyterlab(wheel):
    """Where `make lab` has built it."""
    archive = zipfile.ZipFile(wheel)
    home = next(n for n in archive.namelist() if n.endswith("/labextensions/dtdebug/package.json")).removesuffix(
        "package.json"
    )
    entry = json.loads(archive.read(f"{home}package.json"))["jupyterlab"]["_build"]["load"]

    assert {f"{home}{name}" for name in ("install.json", "schemas/dtdebug/plugin.json", entry)} <= set(
        archive.namelist()
    )


def test_a_build_without_the_extension_says_so_in_one_warning(tmp_path, monkeypatch, capfd):
    """Node is not asked for, even where it is: it would put 500 MB into each environment of pre-commit."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "extension" / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "npm").write_text("#!/bin/sh\ntouch ran\n")
    (tmp_path / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    build = module.Build(str(tmp_path), {}, None, None, "", "sdist")
    build.initialize("standard", {})

    printed = "".join(capfd.readouterr())
    assert 1 == printed.count("no JupyterLab extension"), printed
    assert [] == build.dependencies()
    assert not (tmp_path / "ran").exists()


def test_what_the_extension_knows_is_made_from_this_checkout_alone():
    """The packages of the checkout are found where nothing is installed and no path leads to them."""
    file = ROOT / "extension" / "jupyterlab" / "generate.py"
    ours = [str(ROOT / name) for name in ("kernel", "lsp", "taxonomy")]
    script = (
        f"import runpy, sys; sys.path[:] = [p for p in sys.path if p not in {ours!r}]; "
        f"print(runpy.run_path({str(file)!r})['load'].__module__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        cwd=ROOT.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert "dtdebug_taxonomy.knowledge.loader\n" == done.stdout, done.stderr


def test_the_wheel_runs(wheel, tmp_path):
    """Unpacked elsewhere, it explains and diagnoses."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    script = (
        "import dtdebug, dtdebug.cli.main, sys; print(dtdebug.__file__); "
        "sys.exit(dtdebug.cli.main.main(['diagnose', '--situation', 'hvd.init() never returns on two nodes']))"
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
    assert "The launch or the communication set-up waits for ever or times out." in done.stdout
    assert done.returncode == 1


def needed(name, found):
    """Adds what a distribution needs, without extras, to what was found."""
    for line in distribution(name).requires or ():
        wanted = Requirement(line)
        if (wanted.marker is None or wanted.marker.evaluate({"extra": ""})) and wanted.name not in found:
            found.add(wanted.name)
            needed(wanted.name, found)
    return found


@pytest.fixture(scope="module")
def fresh(wheel, tmp_path_factory):
    """The interpreter of a new environment with the wheel and what it requires, and nothing else; no network."""
    home = tmp_path_factory.mktemp("fresh")
    venv.create(home, symlinks=True)
    (site,) = home.glob("lib/python*/site-packages")
    for name in needed("dtdebug", set()):
        for top in {file.parts[0] for file in distribution(name).files if file.parts[0] not in ("..", "__pycache__")}:
            (site / top).symlink_to(Path(distribution(name).locate_file(top)))
    zipfile.ZipFile(wheel).extractall(site)
    return home / "bin" / "python"


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["learn"], 0, "`backends`"),
        (["learn", "backends"], 0, "torchrun --standalone"),
        (["explain", "D.2.1"], 0, "# D.2.1"),
        (["diagnose", "--situation", "hvd.init() never returns on two nodes"], 1, "waits for ever or times out"),
        (["lab", "list"], 0, "uneven-batches"),
        (["--version"], 0, dtdebug_taxonomy.__version__),
    ],
)
def test_a_fresh_environment_needs_nothing_more(fresh, tmp_path, words, status, says):
    """With its own requirements alone it teaches, explains and diagnoses: no torch, no IPython, no tools of ours."""
    done = subprocess.run(
        [fresh, "-m", "dtdebug", *words],
        env={"PATH": os.defpath, "DTDEBUG_STATE": str(tmp_path / "state")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (status, "") == (done.returncode, done.stderr)
    assert says in done.stdout


def test_a_fresh_environment_is_fresh(fresh):
    """Else the tests above would prove nothing."""
    script = "import importlib.util as u; print([n for n in ('torch', 'IPython', 'pytest', 'numpy') if u.find_spec(n)])"
    assert subprocess.check_output([fresh, "-c", script], text=True, timeout=60) == "[]\n"


def test_a_release_is_refused_where_two_wheels_differ_or_hold_examples(tmp_path):
    """What `make release` looks at: each file by its content, but for the list of their hashes."""
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
    release = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(release)
    wheels = [tmp_path / name for name in ("one.whl", "other.whl")]
    for wheel, text in zip(wheels, ("a", "b"), strict=True):
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("dtdebug/same.py", "")
            archive.writestr("dtdebug/__init__.py", text)
            archive.writestr(f"dtdebug/{wheel.stem}.py", "")
            archive.writestr("dtdebug-0.1.0.dist-info/RECORD", text)
    one, other = map(release.contents, wheels)

    assert ["dtdebug/__init__.py", "dtdebug/one.py", "dtdebug/other.py"] == release.differing(one, other)
    names = ["dtdebug_taxonomy/checks/dt101_x/bad_1.py", "dtdebug_taxonomy/checks/dt101_x/run.py", "dtdebug/run.py"]
    assert [True, True, False] == [release.is_example(PurePosixPath(name)) for name in names]
