"""Labs: folders whose `before.py` really fails and whose `after.py` really works; their difference is a fix to show."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec

from dtdebug_taxonomy.knowledge import KnowledgeError, read_record
from dtdebug_taxonomy.model import Cause, KnowledgeRecord

LABS = Path(__file__).parent / "labs"
BEFORE, AFTER, FILE = "before.py", "after.py", "lab.toml"
TORCHRUN = (
    "{python}", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "{ranks}", "{script}",
)  # fmt: skip


class Needs(KnowledgeRecord, frozen=True, kw_only=True):
    """What must be there so that a lab can run."""

    modules: tuple[str, ...] = ("torch",)
    """Python modules."""
    tools: tuple[str, ...] = ()
    """Programs on the path."""
    linux: tuple[Literal["netns", "ulimit"], ...] = ()
    """Features of the system."""


class Lab(KnowledgeRecord, frozen=True, kw_only=True):
    """One fault to be broken, diagnosed and fixed: `lab.toml`."""

    title: str
    symptom: str
    """Code of the symptom that is seen."""
    cause: str
    """Id of a cause of that symptom."""
    stage: Literal["build", "communication-setup", "preparation", "training"]
    difficulty: Literal["easy", "medium", "hard"]
    runs: Literal["cpu", "gpu", "cluster"] = "cpu"
    recorded: bool = False
    """Its output lies beside it as `before.txt`: for machines that can't run it."""
    framework: str = "pytorch"
    ranks: int = 2
    limit_s: float = 120
    """Seconds after which a run is ended."""
    open: bool = False
    """Nothing that the run prints points at its cause: the answer has to say that it is not known."""
    culprit: int | None = None
    """Rank that comes first, where one does."""
    script: str = "train.py"
    """Name under which the user gets `before.py`."""
    command: tuple[str, ...] = TORCHRUN
    """How it is run, with `{python}`, `{ranks}`, `{script}` and `{folder}`, which holds the script."""
    hang_after_s: float = 60
    """Seconds without movement after which a run counts as one that hangs."""
    works: str
    """Text that a run prints when its work is done."""
    violates: str = ""
    """What does not hold while it trains, where nothing fails: `dtdebug run --watch` runs it, and names that."""
    mark: str = ""
    """Text of the line of `before.py` that is named then."""
    says: str = ""
    """What a user would say, where the output alone does not show what is wrong."""
    hints: tuple[str, str, str]
    """From vague to exact."""
    why: str
    """What is to be learnt."""
    needs: Needs = Needs()
    id: str = ""
    """Name of the folder; filled in by the loader."""

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return LABS / self.id

    def source(self, name: str) -> str:
        """The text of one of its programs."""
        return (self.folder / name).read_text(encoding="utf-8")


@lru_cache(maxsize=2)
def load_labs(home: Path = LABS) -> dict[str, Lab]:
    """All labs by id.

    Raises:
        KnowledgeError: a file is broken; the text names file, place and what was expected.

    """
    replace = msgspec.structs.replace
    return {f.parent.name: replace(read_record(f, Lab), id=f.parent.name) for f in sorted(home.glob(f"*/{FILE}"))}


def load_lab(name: str) -> Lab:
    """The lab in one folder.

    Raises:
        KnowledgeError: there is none of that name, or its file is broken.

    """
    if name not in load_labs():
        raise KnowledgeError(f"{name}: no such lab; `dtdebug lab list` lists them")
    return load_labs()[name]


def cause_diff(cause: Cause) -> str:
    """The fix of a cause as a unified diff: of its lab if it has one."""
    return lab_diff(cause.lab) if cause.lab else cause.diff


@lru_cache(maxsize=64)
def lab_diff(name: str, path: str = "train.py") -> str:
    """The unified diff from a lab's `before.py` to its `after.py`, for the file `path`."""
    import difflib

    before, after = ((LABS / name / f).read_text(encoding="utf-8").splitlines(keepends=True) for f in (BEFORE, AFTER))
    return "".join(difflib.unified_diff(before, after, f"a/{path}", f"b/{path}"))
