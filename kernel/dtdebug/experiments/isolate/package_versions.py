"""Installs a package in another version, in a temporary virtual environment; the user's own stays unchanged.

Only the difference is installed there: the environment includes the user's packages, and its own come first on
`PYTHONPATH`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from dtdebug.errors import UsageError
from dtdebug.privacy.sanitize import clean, one_line

_ASKED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,99})==([A-Za-z0-9][A-Za-z0-9.!+_-]{0,99})\Z")
_LIMIT = 600.0
"""Maximum seconds for pip to search and build."""
_SHORT = 60.0


def asked_releases(words: Sequence[str]) -> dict[str, str]:
    """Parse options such as `numpy==1.26.4` into package -> version.

    Raises:
        UsageError: an option is malformed, or names a package twice.

    """
    found: dict[str, str] = {}
    for word in words:
        match = _ASKED.match(word)
        if match is None:
            raise UsageError(f"isolate --version {word}: a package and one version of it, as in numpy==1.26.4")
        name = re.sub(r"[-_.]+", "-", match[1]).lower()
        if name in found:
            raise UsageError(f"isolate --version {word}: {name} is named twice; name one version of each package")
        found[name] = match[2]
    return found


class Releases:
    """Environments of a search, below its folder; each is created when first needed."""

    def __init__(self, folder: Path, interpreter: str) -> None:
        self._folder, self._interpreter = folder / "versions", interpreter
        self._made: dict[tuple[tuple[str, str], ...], str | UsageError] = {}

    def path(self, wanted: Mapping[str, str], limit: float) -> str:
        """Return the folder with these versions, to be first on `PYTHONPATH`.

        Raises:
            UsageError: they can't be installed; remembered, without another try.

        """
        key = tuple(sorted(wanted.items()))
        if key not in self._made:
            try:
                self._made[key] = self._make(wanted, min(limit, _LIMIT))
            except UsageError as error:
                self._made[key] = error
        found = self._made[key]
        if isinstance(found, UsageError):
            raise found
        return found

    def close(self) -> None:
        """Delete the environments."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _make(self, wanted: Mapping[str, str], limit: float) -> str:
        home = self._folder / str(len(self._made))
        words = [f"{name}=={version}" for name, version in wanted.items()]
        print(f"dtdebug isolate: pip installs {' '.join(words)} for these runs alone", file=sys.stderr, flush=True)
        told = f"isolate --version {' '.join(words)}: can't be had"
        self._run([self._interpreter, "-m", "venv", "--without-pip", str(home)], _SHORT, told)
        code = "import sysconfig, sys; print(sysconfig.get_path('purelib'), *[p for p in sys.path if '-packages' in p])"
        own = self._run([str(home / "bin" / "python"), "-P", "-c", code], _SHORT, told).split()[0]
        theirs = self._run([self._interpreter, "-P", "-c", code], _SHORT, told).split()[1:]
        (Path(own) / "of-the-user.pth").write_text("\n".join(theirs), encoding="utf-8")
        pip = [self._interpreter, "-m", "pip", "--python", str(home / "bin" / "python"), "install", "--quiet"]
        self._run([*pip, "--no-input", "--disable-pip-version-check", *words], limit, told)
        return own

    @staticmethod
    def _run(command: Sequence[str], limit: float, told: str) -> str:
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        try:
            done = subprocess.run(
                command, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise UsageError(f"{told} within {limit:.0f} s") from None
        except OSError as error:
            raise UsageError(f"{told}: {command[0]}: {error.strerror}") from None
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            last = next((line for line in reversed(lines) if "ERROR" in line), lines[-1] if lines else "no reason told")
            raise UsageError(f"{told}: {one_line(clean(last), 300)}")
        return done.stdout
