"""How often the checks are right on code that others wrote: compares their Warnings with labels given by hand.

python tests/precision/measure.py FOLDER        # of unpacked packages: wheels or source distributions
python tests/precision/measure.py FOLDER --new  # prints the lines that are not in the baseline
"""

from __future__ import annotations

import argparse
import email
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

BASELINE = Path(__file__).with_name("baseline.jsonl")
Label = Literal["right", "wrong", "debatable"]


class Place(NamedTuple):
    """Where a check reports something in a release of a package."""

    package: str
    version: str
    path: str
    """From the folder that holds the package's metadata."""
    line: int
    id: str


class Package(NamedTuple):
    """An unpacked release."""

    name: str
    version: str
    root: Path


def labels() -> dict[Place, Label]:
    """The baseline; several hits of one check on one line have one label."""
    rows = [json.loads(line) for line in BASELINE.read_text(encoding="utf-8").splitlines()]
    return {Place(*(row[field] for field in Place._fields)): row["label"] for row in rows}


def packages(folder: Path) -> Iterator[Package]:
    """The releases in a folder: what has PKG-INFO or *.dist-info in it, or in a folder in it."""
    for root in sorted(p for p in (*folder.glob("*/"), *folder.glob("*/*/")) if p.is_dir()):
        files = [*root.glob("PKG-INFO"), *root.glob("*.dist-info/METADATA")]
        if files:
            fields = email.message_from_string(files[0].read_text(encoding="utf-8", errors="replace"))
            yield Package(fields["Name"].lower().replace("_", "-"), fields["Version"], root)


def warnings(package: Package, folder: Path | None = None) -> set[Place]:
    """The Warnings of `dtdebug check` in a package, or in one folder of it."""
    command = [sys.executable, "-m", "dtdebug", "check", "--no-cache", str(folder or package.root), "--format", "json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)
    if ended.returncode not in {0, 1, 2} or not ended.stdout:
        raise RuntimeError(f"dtdebug check {package.root}: {ended.stderr.strip() or ended.returncode}")
    return {
        Place(
            package.name,
            package.version,
            Path(row["path"]).relative_to(package.root).as_posix(),
            row["line"],
            row["id"],
        )
        for row in json.loads(ended.stdout)
        if row["severity"] in {"warning", "error"}
    }


def report(found: set[Place], known: dict[Place, Label]) -> Iterator[str]:
    """A line for each check, one for all, and then all drift from the baseline."""
    yield f"{'check':8}{'hits':>6}{'right':>7}{'wrong':>7}{'debatable':>11}{'no label':>10}  precision"
    for check in (*sorted({p.id for p in found}), "all"):
        counts = Counter(known.get(p, "") for p in found if check in {p.id, "all"})
        right, wrong, debatable = counts["right"], counts["wrong"], counts["debatable"]
        labelled = right + wrong + debatable
        share = (
            f"{right / labelled:.0%}, without the debatable {right / max(right + wrong, 1):.0%}" if labelled else "-"
        )
        yield f"{check:8}{sum(counts.values()):6}{right:7}{wrong:7}{debatable:11}{counts['']:10}  {share}"
    for place in sorted(found - known.keys()):
        yield f"no label: {' '.join(map(str, place))}"
    for place in sorted(known.keys() - found):
        yield f"no hit: {' '.join(map(str, place))} ({known[place]})"


def main() -> int:
    """Prints the report; 1 where it differs from the baseline."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--new", action="store_true")
    arguments = parser.parse_args()
    found: set[Place] = set()
    releases = list(packages(arguments.folder))
    for package in releases:
        found |= warnings(package)
    known = {p: label for p, label in labels().items() if (p.package, p.version) in {r[:2] for r in releases}}
    if arguments.new:
        for place in sorted(found - known.keys()):
            print(json.dumps({**place._asdict(), "label": "", "why": ""}))
        return 0
    print("\n".join(report(found, known)))
    return int(found != known.keys())


if __name__ == "__main__":
    raise SystemExit(main())
