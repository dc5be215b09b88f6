"""Writes the tables in `taxonomy/dtdebug_taxonomy/knowledge/facts/`, or says which of them are out of date.

    python tests/facts/generate.py                        all tables
    python tests/facts/generate.py nccl deepspeed_config  these
    python tests/facts/generate.py --check nn_module      exit status 1 if the file is not what would be written

Packages are fetched by `pip download` into `--downloads FOLDER` (some 4 GB for NCCL), or into a folder that is removed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from deepspeed_keys import deepspeed_config
from environment import environment
from frameworks import accelerate_config, lightning_trainer, transformers_arguments
from nccl import nccl
from options import launchers, torchrun
from public_names import public_names
from torch_tables import nn_module, torch_distributed, torch_env

FACTS = Path(__file__).parents[2] / "taxonomy" / "dtdebug_taxonomy" / "knowledge" / "facts"
INSTALLED = {f.__name__: f for f in (nn_module, torch_distributed, torch_env, torchrun)}
"""Tables that are read from what is installed."""
DOWNLOADED = {
    f.__name__: f
    for f in (
        *(accelerate_config, deepspeed_config, environment, launchers, lightning_trainer, nccl, public_names),
        transformers_arguments,
    )
}


def text(name: str, table: dict[str, object]) -> str:
    """A table as JSON with one entry a line."""
    head = {"source": table.pop("source"), "generated_by": f"tests/facts/generate.py {name}"}
    return "\n".join(_lines({**head, **table}, 0)) + "\n"


def _lines(node: object, depth: int) -> list[str]:
    """Objects are spread over lines down to the level of entries, and so are long lists."""
    flat = json.dumps(node, ensure_ascii=False)
    entry = isinstance(node, dict) and not any(isinstance(v, dict) for v in node.values()) and depth > 1
    if not isinstance(node, dict | list) or not node or entry or (isinstance(node, list) and len(flat) < 60):
        return [flat]
    parts = [(f"{json.dumps(k)}: ", v) for k, v in node.items()] if isinstance(node, dict) else [("", v) for v in node]
    lines = []
    for key, child in parts:
        first, *rest = _lines(child, depth + 1)
        lines += [f" {key}{first}", *(f" {r}" for r in rest)]
        lines[-1] += ","
    lines[-1] = lines[-1][:-1]
    opening, closing = "{}" if isinstance(node, dict) else "[]"
    return [opening, *lines, closing]


def main() -> int:
    """Exit status: 1 if a table that is only checked differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = {**INSTALLED, **DOWNLOADED}
    parser.add_argument("tables", nargs="*", choices=[[], *known], metavar="TABLE", help=", ".join(known))
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--downloads", type=Path, help="folder of packages, kept")
    given = parser.parse_args()
    stale = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in given.tables or known:
            made = INSTALLED[name]() if name in INSTALLED else DOWNLOADED[name](given.downloads or Path(scratch))
            fresh, file = text(name, made), FACTS / f"{name}.json"
            if not given.check:
                file.write_text(fresh, encoding="utf-8")
            elif not file.is_file() or file.read_text(encoding="utf-8") != fresh:
                stale.append(name)
    if stale:
        print(f"out of date: run tests/facts/generate.py {' '.join(stale)}", file=sys.stderr)
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
