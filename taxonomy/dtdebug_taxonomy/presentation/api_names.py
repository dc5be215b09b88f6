"""Looks up public names of frameworks: their kind, their arguments, and advice on their use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from dtdebug_taxonomy.knowledge import facts
from dtdebug_taxonomy.knowledge.facts.tables import Meaning, PublicName
from dtdebug_taxonomy.source.python.names import canonical

_TORCH_PAGES = "https://docs.pytorch.org/docs/stable"
_PAGES = {
    "torch.distributed.fsdp": f"{_TORCH_PAGES}/distributed.fsdp.fully_shard.html",
    "torch.distributed.tensor.parallel": f"{_TORCH_PAGES}/distributed.tensor.parallel.html",
    "torch.distributed.tensor": f"{_TORCH_PAGES}/distributed.tensor.html",
    "torch.distributed.pipelining": f"{_TORCH_PAGES}/distributed.pipelining.html",
    "torch.distributed.checkpoint": f"{_TORCH_PAGES}/distributed.checkpoint.html",
    "torch.distributed.elastic": f"{_TORCH_PAGES}/distributed.elastic.html",
    "torch.distributed.optim": f"{_TORCH_PAGES}/distributed.optim.html",
    "torch.distributed.rpc": f"{_TORCH_PAGES}/rpc.html",
    "torch.distributed._symmetric_memory": f"{_TORCH_PAGES}/symmetric_memory.html",
    "torch.nn": f"{_TORCH_PAGES}/nn.html",
    "torch.utils.data": f"{_TORCH_PAGES}/data.html",
    "torch.": f"{_TORCH_PAGES}/distributed.html",
    "accelerate": "https://huggingface.co/docs/accelerate/package_reference/accelerator",
    "deepspeed": "https://deepspeed.readthedocs.io/en/latest/",
    "lightning": "https://lightning.ai/docs/pytorch/stable/",
    "megatron": "https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/core/parallel_state.py",
    "monarch": "https://github.com/meta-pytorch/monarch",
    "ray": "https://docs.ray.io/en/latest/train/api/api.html",
    "torchft": "https://github.com/meta-pytorch/torchft",
}
"""Documentation pages by prefix of the name; the first match counts."""
_TOGETHER = {
    "collective": "All ranks of the group must call it, in the same order and with sizes that fit; else they wait.",
    "object": "All ranks of the group must call it; objects are pickled, and over NCCL go through the current GPU.",
    "point-to-point": "Each send needs the receive of the other rank, in the same order.",
    "group": "All ranks must call it, in the same order, also those that are not in the group.",
}
"""Advice for functions of torch.distributed, by kind."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")


class Api(NamedTuple):
    """A public name."""

    name: str
    """Name in the tables of facts."""
    told: tuple[str, ...]
    page: str


def public_api(name: str) -> Api | None:
    """Return what is known about a qualified name, imported from any of its modules; None if it is unknown."""
    if found := _find_api(name):
        return found
    owner, _, method = name.rpartition(".")
    cls = _qualified_name(owner)
    methods = facts.public_names().methods.get(cls, {}) if cls else {}
    return _method(cls, method, methods[method]) if cls and method in methods else None


def describe_argument(name: str, argument: str) -> tuple[str, str] | None:
    """Return what the signature tells of an argument of a public name, and its page; None if it does not list it."""
    found = public_api(name)
    signature = next((t for t in found.told if "(" in t and "`" in t), "") if found is not None else ""
    listed = re.search(rf"[(,*] ?{re.escape(argument)}(?:=(?P<default>[^,`]{{1,60}}?))?(?=, |\)`)", signature)
    if found is None or listed is None:
        return None
    owner, _, last = found.name.rpartition(".")
    shown = f"{owner.rpartition('.')[2]}.{last}" if owner.rpartition(".")[2][:1].isupper() else last
    default = f"`{listed['default']}` if it is left out" if listed["default"] else "which it needs"
    package = found.name.partition(".")[0]
    return f"An argument of `{shown}` ({facts.public_names().version(package)}), {default}.", found.page


def method_named(receiver: str, method: str, packages: Iterable[str]) -> str:
    """Return the qualified method of `receiver.method`, judged by the variable's name; empty unless one class fits.

    Args:
        receiver: the last part of the expression before the method: `accelerator`, `dp_mesh`.
        method: its name.
        packages: packages that the program imports; methods of other packages are ignored.

    """
    said = receiver.strip("_").lower()
    fitting: dict[str, str] = {}
    for cls in _having().get(method, ()):
        name = cls.rpartition(".")[2]
        words = [w.lower() for w in _WORD.findall(name)]
        fits = said.replace("_", "") == "".join(words) or said.rpartition("_")[2] == words[-1]
        if fits and cls.partition(".")[0] in packages:
            fitting[name] = f"{cls}.{method}"
    return next(iter(fitting.values())) if len(fitting) == 1 else ""


def api_names() -> Iterator[str]:
    """Yield all names, including methods."""
    table = facts.public_names()
    yield from (canonical(n) for n in (*table.names, *table.elsewhere))
    yield from (f"{canonical(c)}.{m}" for c, methods in table.methods.items() for m in methods)


@lru_cache(maxsize=1)
def _rows() -> dict[str, tuple[str, PublicName]]:
    """Return canonical name -> (name in the facts, its row)."""
    table = facts.public_names()
    return {canonical(n): (n, row) for n, row in (table.elsewhere | table.names).items()}


@lru_cache(maxsize=1)
def _by_end() -> dict[tuple[str, str], str]:
    """Return (package, last part) -> name: modules of one package export the same object."""
    return {
        (n.partition(".")[0], n.rpartition(".")[2]): n
        for n in (*facts.public_names().elsewhere, *facts.public_names().names)
    }


@lru_cache(maxsize=1)
def _having() -> dict[str, list[str]]:
    """Return method -> classes that define it."""
    found: dict[str, list[str]] = {}
    for cls, methods in facts.public_names().methods.items():
        for method in methods:
            found.setdefault(method, []).append(cls)
    return found


def _qualified_name(name: str) -> str:
    """Return the facts' name for a name in a program, or ""."""
    if row := _rows().get(canonical(name)):
        return row[0]
    top, *modules, last = name.split(".") if "." in name else ("", name)
    top = "lightning" if top in {"pytorch_lightning", "lightning_fabric"} else top
    found = "" if any(m[:1].isupper() for m in modules) else _by_end().get((top, last), "")
    return found if last[:1].isupper() or _are_near(modules, found.split(".")[1:-1]) else ""


def _are_near(modules: list[str], others: list[str]) -> bool:
    """True if modules of one package can export the same function: one holds the other, or a part holds both.

    `is_available` of an accelerator is not that of a communication library.
    """
    return modules[:1] == others[:1] or not modules or not others


def _find_api(name: str) -> Api | None:
    known = _qualified_name(name)
    if not known:
        return None
    return Api(known, tuple(_describe_api(*_rows()[canonical(known)])), _page(known))


def _describe_api(name: str, row: PublicName) -> Iterator[str]:
    package, _, rest = name.partition(".")
    meaning = facts.name_meanings().get(name)
    yield from ([meaning.means] if meaning else [])
    yield f"A {row.kind} of {facts.public_names().version(package)}" + (
        f": `{rest.rpartition('.')[2]}{row.takes}`." if row.takes else "."
    )
    known = facts.torch_distributed().functions.get(rest.removeprefix("distributed."))
    if known is not None and package in {"torch", "deepspeed"}:
        yield _TOGETHER[known.kind]
    yield from _wrong(name, meaning)


def _method(cls: str, method: str, takes: str) -> Api:
    package, name = cls.partition(".")[0], f"{cls}.{method}"
    meaning = facts.name_meanings().get(name)
    what = f"`{method}{takes}`, a method" if takes else f"`{method}`, a property"
    told = [meaning.means] if meaning else []
    told.append(f"{what} of `{cls.rpartition('.')[2]}` ({facts.public_names().version(package)}).")
    return Api(name, (*told, *_wrong(name, meaning)), meaning.url if meaning else _page(name))


def _wrong(name: str, meaning: Meaning | None) -> Iterator[str]:
    if told := (meaning.wrong if meaning else "") or facts.wrong_of_family(name):
        yield f"**Often wrong:** {told}"


def _page(name: str) -> str:
    return next(page for start, page in _PAGES.items() if name.startswith(start))
