"""Labs: folders with a `before.py` that fails and an `after.py` that works; their difference is a fix to show."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec

from dtdebug_taxonomy.knowledge.loader import KnowledgeError, read_record
from dtdebug_taxonomy.knowledge.schema import Cause, KnowledgeRecord

LABS = Path(__file__).parents[1] / "labs"
BEFORE, AFTER, FILE = "before.py", "after.py", "lab.toml"
TORCHRUN = (
    "{python}", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "{ranks}", "{script}",
)  # fmt: skip


class Needs(KnowledgeRecord, frozen=True, kw_only=True):
    """Requirements of a lab."""

    modules: tuple[str, ...] = ("torch",)
    """Python modules."""
    tools: tuple[str, ...] = ()
    """Programs on the path."""
    linux: tuple[Literal["netns", "ulimit"], ...] = ()
    """Features of the operating system."""


class Lab(KnowledgeRecord, frozen=True, kw_only=True):
    """One fault to reproduce, diagnose and fix: `lab.toml`."""

    title: str
    symptom: str
    """Code of the symptom that it shows."""
    cause: str
    """Id of a cause of that symptom."""
    stage: Literal["build", "communication-setup", "preparation", "training"]
    difficulty: Literal["easy", "medium", "hard"]
    runs: Literal["cpu", "gpu", "cluster"] = "cpu"
    recorded: bool = False
    """True if its output is stored as `before.txt`, for machines that can't run it."""
    framework: str = "pytorch"
    ranks: int = 2
    limit_s: float = 120
    """Seconds after which a run is ended."""
    open: bool = False
    """True if the run prints nothing that points at its cause: the answer must be that it is unknown."""
    culprit: int | None = None
    """Rank that fails first, if there is one."""
    script: str = "train.py"
    """Name under which the user gets `before.py`."""
    command: tuple[str, ...] = TORCHRUN
    """Command of a run, with `{python}`, `{ranks}`, `{script}` and `{folder}`, which contains the script."""
    hang_after_s: float = 60
    """Seconds without progress after which a run counts as hung."""
    works: str
    """Text that a run prints when its work is done."""
    violates: str = ""
    """Finding about the training although nothing fails, which `dtdebug run --watch`, `--parity` or `--nan` reports."""
    mark: str = ""
    """Text of the line of `before.py` that the report then names."""
    says: str = ""
    """Description by a user, if the output alone does not show what is wrong."""
    hints: tuple[str, str, str]
    """From vague to exact."""
    why: str
    """Lesson of the lab."""
    needs: Needs = Needs()
    id: str = ""
    """Name of the folder; set by the loader."""

    @property
    def folder(self) -> Path:
        """Folder of its files."""
        return LABS / self.id

    def source(self, name: str) -> str:
        """Return the text of one of its programs."""
        return (self.folder / name).read_text(encoding="utf-8")


@lru_cache(maxsize=2)
def load_labs(home: Path = LABS) -> dict[str, Lab]:
    """Return all labs by id.

    Raises:
        KnowledgeError: a file is broken; the text names file, place and what was expected.

    """
    replace = msgspec.structs.replace
    return {f.parent.name: replace(read_record(f, Lab), id=f.parent.name) for f in sorted(home.glob(f"*/{FILE}"))}


def load_lab(name: str) -> Lab:
    """Return the lab in one folder.

    Raises:
        KnowledgeError: no lab has that name, or its file is broken.

    """
    if name not in load_labs():
        raise KnowledgeError(f"{name}: no such lab; `dtdebug lab list` lists them")
    return load_labs()[name]


def cause_diff(cause: Cause) -> str:
    """Return the fix of a cause as a unified diff: its lab's, if it has one."""
    return lab_diff(cause.lab) if cause.lab else cause.diff


@lru_cache(maxsize=64)
def lab_diff(name: str, path: str = "train.py") -> str:
    """Return the unified diff from a lab's `before.py` to its `after.py`, for the file `path`."""
    import difflib

    before, after = ((LABS / name / f).read_text(encoding="utf-8").splitlines(keepends=True) for f in (BEFORE, AFTER))
    return "".join(difflib.unified_diff(before, after, f"a/{path}", f"b/{path}"))
