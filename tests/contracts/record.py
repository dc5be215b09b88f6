"""Records the accounts of the programs next to it in `accounts.jsonl`: one row a program and rank.

python tests/contracts/record.py [NAME ...]; needs torch (CPU), and accelerate and lightning for three of them.

A program that keeps its contract runs first, then the call of the contract's API is made to raise, so that the same
values are recorded.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import multiprocessing
import sys
import tempfile
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
RANKS = 2


class StopError(Exception):
    """Raised in place of a call that succeeds."""


def programs(file: Path) -> dict[str, object]:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return {name: f for name, f in vars(module).items() if name.startswith(("breaks_", "keeps_"))}


def contracts() -> dict[str, object]:
    from dtdebug_taxonomy.knowledge.contracts import load_contracts

    return {c.id.replace("-", "_"): c for c in load_contracts().all}


def stopped(contract, program):
    """The exception of a program whose APIs raise when they are called."""

    def stop(*args, **kwargs):
        raise StopError

    with contextlib.ExitStack() as patches:
        for api in contract.api:
            owner, _, name = api.rpartition(".")
            place = resolve(owner)
            target = getattr(place, name, None)
            if target is None:
                continue
            if isinstance(target, type):
                place, name = target, "forward" if hasattr(target, "forward") and api in LAYERS else "__init__"
            patches.enter_context(patch.object(place, name, stop))
        return outcome(program)


LAYERS = (
    "torch.nn.Linear",
    "torch.nn.Embedding",
    "torch.nn.Conv1d",
    "torch.nn.Conv2d",
    "torch.nn.CrossEntropyLoss",
    "torch.nn.NLLLoss",
)


def resolve(name: str):
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:size]))
        except ImportError:
            continue
        for part in parts[size:]:
            found = getattr(found, part, None)
        return found
    return None


def outcome(program) -> BaseException | None:
    try:
        program()
    except BaseException as error:
        return error
    return None


def record(file: Path, name: str, rank: int | None) -> list[dict]:
    import msgspec

    from dtdebug.account.capture import capture

    program, kind = programs(file)[name], name.partition("_")[0]
    contract = contracts()[name.partition("_")[2]]
    error = outcome(program)
    if kind == "keeps":
        if error is not None:
            print(f"{name} on rank {rank}: {type(error).__name__}: {error}", file=sys.stderr)
            return []
        error = stopped(contract, program)
    if error is None:
        return []
    error.__traceback__ = error.__traceback__.tb_next
    account = msgspec.to_builtins(capture(error, rank, 2.0))
    text = json.dumps(account).replace(str(PROGRAMS), "/w").replace(str(HERE), "/w").replace(sys.prefix, "/env")
    return [{"contract": contract.id, "kind": kind, "account": json.loads(text)}]


def run_ranks(rank: int, file: Path, names: list[str], folder: str) -> None:
    import torch.distributed as dist

    for name in names:
        store = dist.FileStore(f"{folder}/{name}", RANKS)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=RANKS, timeout=timedelta(seconds=4))
        try:
            with Path(f"{folder}/{rank}.jsonl").open("a", encoding="utf-8") as out:
                out.writelines(f"{json.dumps(row)}\n" for row in record(file, name, rank))
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
        if dist.is_initialized():
            dist.destroy_process_group()


def main(only: list[str]) -> None:
    wanted = lambda names: [n for n in names if not only or any(o in n for o in only)]  # noqa: E731
    rows = []
    for name in wanted(programs(PROGRAMS / "alone.py")):
        rows += record(PROGRAMS / "alone.py", name, None)
    with tempfile.TemporaryDirectory() as folder:
        context = multiprocessing.get_context("spawn")
        names = wanted(programs(PROGRAMS / "collectives.py"))
        ranks = [
            context.Process(target=run_ranks, args=(r, PROGRAMS / "collectives.py", names, folder))
            for r in range(RANKS)
        ]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join(240)
            if process.is_alive():
                process.kill()
        for rank in range(RANKS):
            file = Path(folder) / f"{rank}.jsonl"
            rows += [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    file, new = HERE / "accounts.jsonl", {(row["contract"], row["kind"]) for row in rows}
    old = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    rows = sorted(
        (*(row for row in old if (row["contract"], row["kind"]) not in new), *rows),
        key=lambda row: (row["contract"], row["kind"], row["account"].get("rank") or 0),
    )
    file.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
