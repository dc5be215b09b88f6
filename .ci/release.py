"""Builds what a release would upload, and checks it as the index would: `make release`. Nothing is uploaded.

The wheel is built from the source distribution, and once more from this tree: both must hold the same.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

TOP = Path(__file__).parents[1]
DIST, AGAIN = TOP / "dist", TOP / "build" / "wheel-of-tree"
EXTENSION = "share/jupyter/labextensions/dtdebug/package.json"


def main() -> None:
    """Ends with the first thing that is wrong, in one line."""
    for folder in (DIST, AGAIN):
        shutil.rmtree(folder, ignore_errors=True)
    run("build", "--outdir", str(DIST), str(TOP))
    run("build", "--wheel", "--outdir", str(AGAIN), str(TOP))
    (sdist,), (wheel,), (other,) = DIST.glob("*.tar.gz"), DIST.glob("*.whl"), AGAIN.glob("*.whl")
    run("twine", "check", "--strict", str(sdist), str(wheel))
    held = contents(wheel)
    if differs := differing(held, contents(other)):
        raise SystemExit(f"release: the wheels of the tree and of the source distribution differ: {differs[:5]}")
    wrong = [name for name in held if is_example(PurePosixPath(name))]
    if wrong:
        raise SystemExit(f"release: the wheel holds examples of tests: {wrong[:5]}")
    if not any(name.endswith(EXTENSION) for name in held):
        raise SystemExit("release: the wheel holds no JupyterLab extension: `make lab` builds it")
    with tarfile.open(sdist) as archive:
        files = len(archive.getnames())
    print(f"{sdist.name}: {sdist.stat().st_size / 1e6:.1f} MB, {files} files")
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, {len(held)} files, the same from both")


def run(module: str, *words: str) -> None:
    """Runs a tool of this environment; what it says is shown."""
    done = subprocess.run([sys.executable, "-m", module, *words], cwd=TOP, check=False)
    if done.returncode:
        raise SystemExit(f"release: {module} failed, see above")


def contents(wheel: Path) -> dict[str, str]:
    """Name -> hash of each file, without the list of hashes itself."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/RECORD")]
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in names}


def differing(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """The files that one alone has, or that both have with other content."""
    return sorted({name for name, _ in one.items() ^ other.items()})


def is_example(file: PurePosixPath) -> bool:
    """An example of a check, or a run that shows what its page claims."""
    return "checks" in file.parts and (file.name == "run.py" or file.name.startswith(("bad_", "good_", "near_miss_")))


if __name__ == "__main__":
    main()
