"""Names in a program: the written name of an expression, and its qualified name outside."""

from __future__ import annotations

import ast


def dotted_name(node: ast.AST | None) -> str:
    """Return `a.b.c` for a chain of attributes on a name, as written; empty for anything else."""
    if isinstance(node, ast.Name):  # half of all
        return node.id
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    parts.append(node.id)
    return ".".join(reversed(parts))


def root_name(node: ast.AST | None) -> str:
    """Return `a` for `a.b.c`; empty for anything but a chain of attributes on a name."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """Return an argument that is given by its name."""
    return next((k.value for k in call.keywords if k.arg == name), None)


def last_name(call: ast.Call) -> str:
    """Return the last part of the name that is called, also of a method of what another call returns."""
    return dotted_name(call.func).rpartition(".")[2] or getattr(call.func, "attr", "")


def imported_names(imports: list[ast.Import | ast.ImportFrom]) -> dict[str, str]:
    """Return local name -> qualified name of everything that a program imports, anywhere."""
    names: dict[str, str] = {}
    for node in imports:
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                module = f"{node.module}." if node.module else ""
                names[alias.asname or alias.name] = f"{'.' * node.level}{module}{alias.name}"
            elif alias.asname:
                names[alias.asname] = alias.name
            else:
                top = alias.name.split(".", 1)[0]
                names[top] = top
    return names


_CANONICAL = {
    "torch.distributed.distributed_c10d.": "torch.distributed.",
    "torch.nn.parallel.distributed.": "torch.nn.parallel.",
    "torch.distributed.fsdp.fully_sharded_data_parallel.": "torch.distributed.fsdp.",
    "torch.utils.data.distributed.": "torch.utils.data.",
    "torch.utils.data.dataloader.": "torch.utils.data.",
    "torch.utils.data.dataset.": "torch.utils.data.",
    "torch.nn.modules.batchnorm.": "torch.nn.",
    "torch.multiprocessing.spawn.": "torch.multiprocessing.",
    "deepspeed.comm.": "torch.distributed.",
    "lightning.pytorch.": "pytorch_lightning.",
    "lightning.fabric.": "lightning_fabric.",
    "lightning.Trainer": "pytorch_lightning.Trainer",
    "lightning.LightningModule": "pytorch_lightning.LightningModule",
    "lightning.Fabric": "lightning_fabric.Fabric",
    "accelerate.accelerator.": "accelerate.",
}
"""Longer public and semi-public paths to the same objects."""
_LONG = tuple(_CANONICAL)


def canonical(name: str) -> str:
    """Return the one name for objects that can be imported from several places."""
    if not name.startswith(_LONG):  # nearly all names
        return name
    long, short = next(pair for pair in _CANONICAL.items() if name.startswith(pair[0]))
    return short + name[len(long) :]
