"""Plants one fault at a random line of a copy of a program, drawn from a seed; so the truth is known."""

from __future__ import annotations

import ast
import json
import random
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path

from statements import made_of

FOLDER = Path(__file__).resolve().parent
PROGRAMS = {
    "ddp": "main.py",
    "fsdp2": "train.py",
    "mingpt": "main.py",
    "tensor": "train_tp.py",
    "nanogpt": "train.py",
    "accel": "train.py",
    "light": "train.py",
    "pipe": "train_pp.py",
}
"""Folder -> script that is started."""
WORKERS = {"ddp": "main.py", "mingpt": "char_dataset.py"}
"""Programs whose samples are read by a process of its own, and the file that has them."""
DEATHS = ("said", "fetched", "real", "errno", "mute", "exit_code", "os_exit", "kill", "segv", "abort")
HANGS = ("sleep", "flock", "fifo", "socket", "child", "deadlock", "queue", "loop", "regex", "worker_stuck")
CALLS = ("skip", "extra", "leave", "return")
HEALTHY = ("slow_save", "compile", "slow_all", "slow_rank", "clean")
OTHER = ("worker_said", "worker_kill")
FAMILIES = {"dies": (*DEATHS, *OTHER), "hangs": HANGS, "calls": CALLS, "healthy": HEALTHY}
COLLECTIVES = {"all_reduce", "broadcast", "barrier", "all_gather", "full_tensor", "gather_object", "wait_for_everyone"}
RETURNING = {
    "train",
    "test",
    "main",
    "save",
    "checkpoint",
    "evaluate",
    "_run_epoch",
    "training_function",
    "report",
    "cli_main",
    "on_train_epoch_end",
    "estimate_loss",
}
"""Functions whose early end leaves a collective out."""
SHARES = {"dies": 12, "hangs": 10, "calls": 5, "healthy": 5}


@dataclass(frozen=True)
class Fault:
    """One job and what is true of it."""

    seed: int
    program: str
    world: int
    fault: str
    family: str
    rank: int | None
    """None: all ranks do it, which is no fault."""
    visit: int
    file: str
    """Relative to the folder of the programs."""
    line: int
    statement: str
    kinds: tuple[str, ...]
    name: str = ""
    """Class of the exception."""
    words: str = ""
    """What a right answer about the cause says: a regular expression."""
    lines: tuple[tuple[str, int], ...] = ()
    """Lines that are right: of the fault, and where it shows."""
    needs_line: bool = True
    armed: bool = True
    ops: tuple[str, ...] = field(default=())
    """Collectives that the healthy program calls."""

    @property
    def title(self) -> str:
        """Name of its folder."""
        return f"{self.seed}-{self.program}x{self.world}-{self.fault}-{'armed' if self.armed else 'plain'}"


def shape(seed: int, most: int = 4) -> tuple[str, int, str, str, bool]:
    """Program, number of ranks, family, fault and whether it is started by dtdebug."""
    chance = random.Random(f"shape {seed}")
    program = chance.choice(list(PROGRAMS))
    world = min(most, chance.choice((2, 2, 2, 3, 4, 8)))
    if program == "tensor" and world == 3:  # its widths are powers of two
        world = 2
    family = chance.choices(list(SHARES), list(SHARES.values()))[0]
    choices = [one for one in FAMILIES[family] if not one.startswith("worker") or program in WORKERS]
    if family == "calls" and program in ("mingpt", "light"):
        choices = ["leave", "return"]
    fault = chance.choice(choices)
    armed = family == "healthy" or chance.random() < 0.67
    return program, world, family, fault, armed


def draw(seed: int, traced: dict[int, dict], most: int = 4) -> Fault:
    """The fault of a seed; `traced` is what each rank of the healthy program does."""
    program, world, family, fault, armed = shape(seed, most)
    chance = random.Random(f"fault {seed}")
    rank = None if fault in ("slow_all", "compile", "clean") else chance.randrange(world)
    if fault == "slow_save":
        rank = 0
    places = _places(program, fault)
    reached = traced[rank or 0]["lines"]
    if fault.startswith("worker"):
        spots = [(place, 6) for place in places]
    else:
        spots = [(place, reached[_key(place)]) for place in places if _key(place) in reached]
    if fault in ("slow_all", "slow_rank", "slow_save"):
        spots = [spot for spot in spots if spot[1] > 2] or spots
    (file, line), visits = chance.choice(spots)
    visit = chance.randint(1, 1 if (file, line) in _headers(program) else min(visits, 8))
    made = made_of(fault, chance)
    shown = [(file, line)]
    if fault.startswith("worker"):
        shown += [(name, at + (name == file and at >= line)) for name, at in _loops(program)]
    return Fault(
        seed=seed, program=program, world=world, fault=fault, family=family, rank=rank, visit=visit, file=file,
        line=line, armed=armed, lines=tuple(shown), ops=tuple(traced[0]["ops"]), **made,
    )  # fmt: skip


def plant(fault: Fault, folder: Path) -> Path:
    """Copies the program into a folder and plants the fault; the script to start."""
    copy = folder / "work" / fault.program
    library = folder / "lib" / "python3" / "site-packages"
    library.mkdir(parents=True)
    shutil.copytree(FOLDER / "programs" / fault.program, copy)
    shutil.copy(FOLDER / "storelib.py", library)
    (folder / "records").mkdir()
    plan = {"rank": fault.rank, "visit": fault.visit, "folder": str(folder / "records"), "programs": str(copy.parent)}
    (library / "plan.json").write_text(json.dumps(plan))
    (folder / "truth.json").write_text(json.dumps(asdict(fault), indent=1))
    if fault.fault != "clean":
        target = copy.parent / fault.file
        lines = target.read_text().splitlines()
        statement = fault.statement.replace("@FOLDER@", str(folder))
        old = lines[fault.line - 1]
        indent = old[: len(old) - len(old.lstrip())]
        if fault.fault == "skip":
            lines[fault.line - 1] = f"{indent}if not storelib.now(): {old.lstrip()}"
        elif fault.fault == "extra":
            lines[fault.line - 1] = f"{indent}{'storelib.now() and ' + old.lstrip()}; {old.lstrip()}"
        else:
            lines.insert(fault.line - 1, f"{indent}if storelib.now(): {statement}")
        target.write_text("\n".join(lines) + "\n")
        _import(target)
    if fault.fault != "clean" and fault.file != f"{fault.program}/{PROGRAMS[fault.program]}":
        _import(copy / PROGRAMS[fault.program])
    return copy / PROGRAMS[fault.program]


def tracing(program: str, folder: Path) -> Path:
    """A copy that reports which lines each rank runs; the script to start."""
    copy = folder / "work" / program
    library = folder / "lib" / "python3" / "site-packages"
    library.mkdir(parents=True)
    (folder / "records").mkdir()
    shutil.copytree(FOLDER / "programs" / program, copy)
    shutil.copy(FOLDER / "storelib.py", library)
    plan = {"rank": -2, "visit": 0, "folder": str(folder / "records"), "programs": str(copy.parent), "trace": True}
    (library / "plan.json").write_text(json.dumps(plan))
    _import(copy / PROGRAMS[program])
    return copy / PROGRAMS[program]


def _import(path: Path) -> None:
    """Without another line: the numbers remain."""
    lines = path.read_text().splitlines()
    first = next(n for n, text in enumerate(lines) if text.startswith(("import ", "from ")))
    lines[first] = f"import storelib; {lines[first]}"
    path.write_text("\n".join(lines) + "\n")


def _places(program: str, fault: str) -> list[tuple[str, int]]:
    """File and first line of all statements before which this fault can be put."""
    found = []
    for path in sorted((FOLDER / "programs" / program).glob("*.py")):
        tree, text = ast.parse(path.read_text()), path.read_text().splitlines()
        name = f"{program}/{path.name}"
        bodies: list[ast.AST] = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        if fault.startswith("worker"):
            bodies = [node for node in bodies if node.name == "__getitem__" and path.name == WORKERS[program]]
        elif program in WORKERS:
            bodies = [node for node in bodies if node.name != "__getitem__"]
        if program == "nanogpt" and fault != "return":
            bodies.append(tree)
        for body in bodies:
            for node in ast.walk(body):
                if not isinstance(node, ast.stmt) or isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Import)):
                    continue
                if body is tree and not _at_module_level(tree, node):
                    continue
                if isinstance(node, (ast.ImportFrom, ast.Global)) or text[node.lineno - 1].lstrip().startswith("elif"):
                    continue
                if fault in ("skip", "extra") and not _calls(node):
                    continue
                if fault == "return" and body.name not in RETURNING:
                    continue
                found.append((name, node.lineno))
    return sorted(set(found))


def _at_module_level(tree: ast.Module, node: ast.stmt) -> bool:
    inside = {id(one) for top in tree.body if isinstance(top, (ast.FunctionDef, ast.ClassDef)) for one in ast.walk(top)}
    return id(node) not in inside and not (isinstance(node, ast.If) and node in tree.body and node is tree.body[-1])


def _calls(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call) or node.lineno != node.end_lineno:
        return False
    function = node.value.func
    return (function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")) in COLLECTIVES


def _key(place: tuple[str, int]) -> str:
    return f"{place[0]}:{place[1]}"


def _headers(program: str) -> set[tuple[str, int]]:
    """Lines that are passed more often than what stands before them."""
    return {
        (f"{program}/{path.name}", node.lineno)
        for path in (FOLDER / "programs" / program).glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.stmt) and (isinstance(node, (ast.For, ast.While, ast.With)) or _long(node))
    }


def _long(node: ast.stmt) -> bool:
    return node.end_lineno != node.lineno and not isinstance(node, ast.If)


def _loops(program: str) -> list[tuple[str, int]]:
    """Where samples are taken: a failure of a worker shows there."""
    found: list[tuple[str, int]] = []
    for path in sorted((FOLDER / "programs" / program).glob("*.py")):
        nodes = ast.walk(ast.parse(path.read_text()))
        loops = [node for node in nodes if isinstance(node, ast.For) and "loader" in ast.unparse(node.iter)]
        found += [(f"{program}/{path.name}", node.lineno) for node in loops]
    return found
