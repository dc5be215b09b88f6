"""lightning_trainer.json, transformers_arguments.json, accelerate_config.json: arguments of what wraps torch."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from options import ACCELERATE, launchers
from sources import class_named, download, fields, lifetimes, literal, tree

LIGHTNING = (
    *("1.5.10", "1.6.5", "1.7.7", "1.8.6", "1.9.5", "2.0.9"),
    *("2.1.4", "2.2.5", "2.3.3", "2.4.0", "2.5.6", "2.6.6"),
)
TRANSFORMERS = ("4.30.2", "4.36.2", "4.41.2", "4.46.3", "4.51.3", "4.57.1", "5.23.0")
_DISTRIBUTION = re.compile(
    r"accelerator|accumulation|average_tokens|backend|batch_size|bf16|ddp|deepspeed|device|dispatch|dataloader|fp16|"
    r"fsdp|full_determinism|gpu|group_by_length|local_rank|no_cuda|node|optim$|parallel|precision|save_on|seed|sharded|"
    r"split_batches|tf32|torch_compile|(?<!ou)tpu_|use_cpu|xpu"
)


def lightning_trainer(folder: Path) -> dict[str, object]:
    """Which arguments `Trainer` has from which version of Lightning to which."""
    seen = {}
    for version in LIGHTNING:
        module = tree(download("pytorch-lightning", version, folder), "/pytorch_lightning/trainer/trainer.py")
        init = next(
            n for n in class_named(module, "Trainer").body if isinstance(n, ast.FunctionDef) and n.name == "__init__"
        )
        seen[version] = {a.arg for a in (*init.args.args, *init.args.kwonlyargs)} - {"self"}
    return {
        "source": f"pytorch-lightning {LIGHTNING[0]} to {LIGHTNING[-1]}",
        "versions": list(LIGHTNING),
        "arguments": lifetimes(seen),
    }


def transformers_arguments(folder: Path) -> dict[str, object]:
    """Which arguments of `TrainingArguments` concern distribution, and in which versions they exist."""
    seen, newest = {}, {}
    for version in TRANSFORMERS:
        module = tree(download("transformers", version, folder), "/transformers/training_args.py")
        newest = {n: f for n, f in fields(class_named(module, "TrainingArguments")).items() if _DISTRIBUTION.search(n)}
        seen[version] = set(newest)
    return {
        "source": f"transformers {TRANSFORMERS[0]} to {TRANSFORMERS[-1]}",
        "versions": list(TRANSFORMERS),
        "arguments": lifetimes(seen),
    }


def accelerate_config(folder: Path) -> dict[str, object]:
    """The keys of `default_config.yaml`, those of its sections dotted."""
    archive = download("accelerate", ACCELERATE, folder)
    module = tree(archive, "/accelerate/commands/config/config_args.py")
    keys: dict[str, dict[str, object]] = {}
    for name in ("BaseConfig", "ClusterConfig"):
        for key, (annotation, default) in fields(class_named(module, name)).items():
            found = literal(default)
            keys[key] = {"type": annotation} | ({} if found is None else {"default": found})
    asked: dict[str, set[str]] = {k: set() for k in keys if k.endswith("_config")}
    questions = list(ast.walk(tree(archive, "/accelerate/commands/config/cluster.py")))
    prefixes = {
        str(literal(n.value)) for n in questions if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "prefix"
    }
    for node in questions:
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in asked:
            section = node.value.id
            prefix = next((p for p in prefixes if p.startswith(section.removesuffix("_config"))), "")
            asked[section].add(_subscript(node.slice, prefix))
    options = [o.removeprefix("--") for o in launchers(folder)["launchers"]["accelerate launch"]["options"]]
    for section, names in asked.items():
        names.discard("")
        names |= {
            o for o in options if o.startswith(section.removesuffix("config"))
        }  # the file takes what the command does
        keys[section] = {"type": "dict"} if names else {"type": "dict", "open": True}
        keys.update((f"{section}.{n}", {}) for n in names)
    return {"source": f"accelerate {ACCELERATE}", "keys": dict(sorted(keys.items()))}


def _subscript(key: ast.expr, prefix: str) -> str:
    """The key of `section[...]`; some are `prefix + "name"`."""
    if isinstance(key, ast.Constant):
        return str(key.value)
    if isinstance(key, ast.BinOp) and isinstance(key.right, ast.Constant):
        return f"{prefix}{key.right.value}"
    return ""
