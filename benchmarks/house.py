"""Measure how readable the product's own source is: size, names and docstrings; with --list, name what to change.

Counted are the modules of `kernel/`, `lsp/` and `taxonomy/` without labs, examples and notebooks. The aims are those of
CONTRIBUTING: below 1 % of functions named by one bare participle, below 3 % of docstrings that begin with a question
word, and no two modules of one name in one package folder.

    python benchmarks/house.py [--list] [FOLDER...]
    python benchmarks/house.py --walk

With --walk, answer for a log, an exception and a file, and print the way through the rooms: how many were entered, how
often a call went from one to another, how often back to one that had been left, and how many bytes of the input were
read for each of its bytes.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[1]
PRODUCT = ("kernel/dtdebug", "lsp/dtdebug_lsp", "taxonomy/dtdebug_taxonomy")
SKIP = re.compile(r"/labs/|/learn/notebooks/|/(rules/)?dt\d+_\w+/(?!check\.py)|/bootstrap/")
IRREGULAR = frozenset({
    "told", "kept", "held", "found", "seen", "begun", "known", "made", "said", "left", "sent", "met", "lost", "stuck",
    "shown", "drawn", "written", "given", "taken", "spoken", "broken", "chosen", "gone", "done", "born", "laid",
    "spied", "bereft", "apart", "within", "beside", "elsewhere", "again",
})  # fmt: skip
"""Participles that do not end in -ed, and the adverbs used like them."""
NOT_PARTICIPLES = frozenset(["seed", "feed", "need", "speed", "embed", "shed", "bed", "red"])
PARSERS = frozenset({"split_lines", "find_events", "split_prose", "find_contrasts", "advice_in_message", "outcome"})
"""Functions that make something of a text, which should be called once for each."""
LOG = (
    "".join(f"[rank{r}]: step {n} loss={3 - n / 4000:.4f}\n" for n in range(4000) for r in range(4))
    + '[rank2]: Traceback (most recent call last):\n[rank2]:   File "train.py", line 9, in <module>\n'
    + "[rank2]:     loss = model(batch)\n[rank2]: RuntimeError: CUDA error: device-side assert triggered\n"
)
PROGRAM = """import torch.distributed as dist

dist.init_process_group("nccl")
if dist.get_rank() == 0:
    dist.barrier()
"""
QUESTION = re.compile(r"(What|Who|Whose|Whether|Where|Of|Those|Which|How)\b")


def modules(folders: list[str]) -> Iterator[Path]:
    """Yield the product's Python files."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not SKIP.search(path.as_posix()):
                yield path


def is_bare_participle(name: str) -> bool:
    """True if a function is named by one past participle or adverb alone."""
    bare = name.strip("_")
    return bare in IRREGULAR or (bare.endswith("ed") and bare.isalpha() and bare not in NOT_PARTICIPLES)


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each docstring: of modules, classes, functions, and below attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text
        if isinstance(node, ast.Module | ast.ClassDef):
            for before, after in zip(node.body, node.body[1:], strict=False):
                if (
                    isinstance(before, ast.Assign | ast.AnnAssign)
                    and isinstance(after, ast.Expr)
                    and isinstance(after.value, ast.Constant)
                    and isinstance(after.value.value, str)
                ):
                    yield after.lineno, after.value.value


class Walk:
    """The rooms (packages) that calls enter one after the other."""

    def __init__(self) -> None:
        self.stays: list[str] = []
        self.parses: Counter[str] = Counter()

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call, as a function for `sys.setprofile`."""
        module = frame.f_globals.get("__name__", "")
        if event != "call" or not module.startswith("dtdebug"):
            return
        room = ".".join(module.split(".")[:2])
        if not self.stays or self.stays[-1] != room:
            self.stays.append(room)
        if frame.f_code.co_name in PARSERS:
            self.parses[frame.f_code.co_name] += 1

    @property
    def returns(self) -> int:
        """Number of times that a room was entered again."""
        return len(self.stays) - len(set(self.stays))


def walks() -> Iterator[tuple[str, Walk, float]]:
    """Yield name, way, and bytes read for each byte of the input, of a log, an exception and a file."""
    from dtdebug.capture import describe
    from dtdebug.cli.main import main as command
    from dtdebug.privacy.boundary import diagnose
    from dtdebug.storage import safe_open
    from dtdebug_taxonomy.knowledge.loader import load
    from dtdebug_taxonomy.model.snapshot import Snapshot

    read: Counter[str] = Counter()
    open_file = safe_open.log

    class Counted(io.FileIO):
        def read(self, size: int | None = -1) -> bytes:
            data = super().read(size) or b""
            read[path] += len(data)
            return data

        def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
            size = super().readinto(buffer) or 0
            read[path] += size
            return size

    def counted(name: str, **kinds: bool) -> io.FileIO:
        with open_file(name, **kinds) as file:
            return Counted(os.dup(file.fileno()), "rb")

    def follow(action: Callable[[], object]) -> Walk:
        walk = Walk()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            sys.setprofile(walk.note)
            try:
                action()
            finally:
                sys.setprofile(None)
        return walk

    knowledge = load()
    safe_open.log = counted  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("job.log", LOG), ("train.py", PROGRAM)):
            path = str(Path(folder, name))
            Path(path).write_text(text, encoding="utf-8")
            follow(lambda path=path: command([path]))  # type: ignore[misc] # modules are imported
            read.clear()
            walk = follow(lambda path=path: command([path]))  # type: ignore[misc]
            yield ("a log" if name == "job.log" else "a file"), walk, read[path] / len(text)
    error = RuntimeError("Default process group has not been initialized, please make sure to call init_process_group.")
    snapshot = Snapshot(exception=describe(error))
    diagnose(knowledge, snapshot)
    yield "an exception", follow(lambda: diagnose(knowledge, snapshot)), 0.0


def print_walks() -> None:
    """Print the table of the ways."""
    print("| parameter | rooms | stays | returns | input read | parsed |\n| --- | --- | --- | --- | --- | --- |")
    ways = []
    for name, walk, share in walks():
        parsed = ", ".join(f"{what} {count}" for what, count in sorted(walk.parses.items()))
        read = f"{share:.2f} times" if share else "-"
        print(f"| {name} | {len(set(walk.stays))} | {len(walk.stays)} | {walk.returns} | {read} | {parsed} |")
        ways.append(f"{name}: {' > '.join(dict.fromkeys(walk.stays))}")
    print("\nRooms in the order in which they are first entered:", *ways, sep="\n")


def main(arguments: list[str]) -> int:
    """Print the table; returns 0."""
    if "--walk" in arguments:
        print_walks()
        return 0
    listed = "--list" in arguments
    folders = [a for a in arguments if a != "--list"] or list(PRODUCT)
    counts: Counter[str] = Counter()
    for path in modules(folders):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        counts["modules"] += 1
        counts["lines"] += text.count("\n")
        shown = path.relative_to(ROOT)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                counts["functions"] += 1
                if is_bare_participle(node.name):
                    counts["participles"] += 1
                    if listed:
                        print(f"{shown}:{node.lineno}: name: {node.name}")
        for line, doc in docstrings(tree):
            counts["docstrings"] += 1
            if QUESTION.match(doc):
                counts["questions"] += 1
                if listed:
                    print(f"{shown}:{line}: docstring: {doc.splitlines()[0]}")
    share = 100 * counts["participles"] / max(counts["functions"], 1)
    asked = 100 * counts["questions"] / max(counts["docstrings"], 1)
    print(f"{counts['modules']} modules, {counts['lines']} lines")
    print(
        f"functions named by one bare participle: {counts['participles']} of {counts['functions']}"
        f" ({share:.1f} %, aim 1 %)"
    )
    print(
        f"docstrings that begin with a question word: {counts['questions']} of {counts['docstrings']} ({asked:.1f} %)"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
