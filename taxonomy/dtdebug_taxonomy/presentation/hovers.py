"""Hover texts of an editor: what a name is, what goes wrong with it, what to check."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec

from dtdebug_taxonomy.knowledge import facts
from dtdebug_taxonomy.knowledge.contracts import Contract, contract_key, load_contracts
from dtdebug_taxonomy.knowledge.facts.tables import Meaning, ReadVariable
from dtdebug_taxonomy.knowledge.loader import Knowledge, read_record
from dtdebug_taxonomy.knowledge.schema import KnowledgeRecord
from dtdebug_taxonomy.presentation.api_names import api_names, describe_argument, public_api
from dtdebug_taxonomy.text.contract_call import short_name
from dtdebug_taxonomy.text.demands import names_in

HOME = Path(__file__).parents[1] / "hovers"

Kind = Literal["python", "environment", "deepspeed", "option"]

_FILES: dict[Kind, tuple[str, ...]] = {
    "python": ("torch", "frameworks", "parallel"),
    "environment": ("environment",),
    "deepspeed": ("deepspeed_config",),
    "option": ("options",),
}
_NCCL_DOCS = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"
_TORCH_NCCL_DOCS = "https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html"
_DEEPSPEED_DOCS = "https://www.deepspeed.ai/docs/config-json/"
_COMMANDS = {
    "#SBATCH": "sbatch",
    "accelerate": "accelerate launch",
    "python -m torch.distributed.launch": "torchrun",
    "python -m torch.distributed.run": "torchrun",
    "salloc": "sbatch",
}
"""Other commands that call a launcher."""


_DEMANDS = 3
"""Maximum number of demands that a hover lists."""
_MEGATRON = "megatron.core.parallel_state."
"""Programs import this module as `mpu` or `parallel_state`."""


class HoverEntry(KnowledgeRecord, frozen=True, kw_only=True, rename={"is_": "is"}):
    """Name that can be pointed at."""

    name: str
    aliases: tuple[str, ...] = ()
    generic: bool = False
    """True if the last part of the name alone (`send`, `load`) may be something else."""
    is_: str
    wrong: str
    """Most frequent mistake with it."""
    check: tuple[str, ...]
    symptoms: tuple[str, ...]
    page: str
    """Key in `[pages]` of the file; its address once loaded."""


class ArgumentEntry(KnowledgeRecord, frozen=True, kw_only=True, rename={"is_": "is"}):
    """Keyword of one or several APIs."""

    name: str
    of: tuple[str, ...]
    is_: str
    wrong: str
    page: str


class _ArgumentFile(KnowledgeRecord, frozen=True, kw_only=True):
    pages: dict[str, str]
    argument: tuple[ArgumentEntry, ...]


class _File(KnowledgeRecord, frozen=True, kw_only=True):
    pages: dict[str, str]
    entry: tuple[HoverEntry, ...]


class Hover(msgspec.Struct, frozen=True, kw_only=True):
    """Knowledge about a name: a text, facts of versions, or both."""

    title: str
    entry: HoverEntry | None = None
    asks: tuple[str, ...] = ()
    """Demands of the call, one line each."""
    facts: tuple[str, ...] = ()
    url: str = ""


@lru_cache(maxsize=4)
def entries(kind: Kind) -> dict[str, HoverEntry]:
    """Return all texts of a kind by each of their names."""
    found: dict[str, HoverEntry] = {}
    for file in _FILES[kind]:
        read_file = read_record(HOME / f"{file}.toml", _File)
        for e in read_file.entry:
            entry = msgspec.structs.replace(e, page=read_file.pages[e.page])
            found.update((spelt, entry) for name in (e.name, *e.aliases) for spelt in _spellings(name, entry, kind))
    return found


def _spellings(name: str, entry: HoverEntry, kind: Kind) -> Iterator[str]:
    yield _with_dashes(name) if kind == "option" else name
    last = name.rpartition(".")[2]
    distinct = last[:1].isupper() or name.startswith("torch.distributed.")
    if kind == "python" and distinct and not entry.generic:
        yield last
    if name.startswith(_MEGATRON):
        yield from (f"mpu.{last}", f"parallel_state.{last}")


def hover(name: str, knowledge: Knowledge, kind: Kind | None = None) -> str | None:
    """Return the Markdown for a name, or None if nothing is known about it.

    Args:
        name: `torch.distributed.all_reduce`, `dist.all_reduce`, `NCCL_DEBUG`, `zero_optimization.stage`,
            `torchrun --nproc_per_node`, `--nnodes`, `#SBATCH -N`.
        knowledge: titles of symptoms.
        kind: kind of the name, if its context shows that.

    """
    found = look_up(name, kind)
    return None if found is None else render(found, knowledge)


def argument_hover(api: str, name: str) -> str | None:
    """Return the Markdown for a keyword of a call: what it decides, and what the call asks of it; None if unknown."""
    entry = _arguments().get((contract_key(api), name))
    lines = demands_of(api, name)
    if entry is None and not lines:
        listed = describe_argument(api, name)
        return f"**`{short_name(api)}({name}=...)`**\n\n{listed[0]}\n\n[Documentation]({listed[1]})" if listed else None
    found = [f"**`{short_name(api)}({name}=...)`**"]
    found += [entry.is_, f"**Often wrong:** {entry.wrong}"] if entry is not None else []
    found += ["\n".join(f"- {line}" for line in lines)] if lines else []
    page = entry.page if entry is not None else _reference(api, name)
    return "\n\n".join([*found, f"[Documentation]({page})"])


def demands_of(api: str, argument: str = "") -> tuple[str, ...]:
    """Return what contracts ask of a call, or of one of its arguments, in at most three lines.

    What they ask of few calls comes before what they ask of many.
    """
    contracts = sorted(load_contracts().called(api), key=lambda c: len(c.api))
    found = (line for contract in contracts if (line := _demand(contract, api, argument)))
    return tuple(dict.fromkeys(found))[:_DEMANDS]


def _demand(contract: Contract, api: str, argument: str) -> str:
    """Return the sentence of a contract without values; empty if it has none, or is about another argument."""
    if argument and argument not in {contract.about, *_names(contract)}:
        return ""
    said = contract.asks or contract.says.partition(": ")[0]
    said = said.replace("{api}", short_name(api)).replace("{what}", "shape and dtype")
    return "" if "{" in said or not said else f"{said}."


def _names(contract: Contract) -> frozenset[str]:
    return names_in(contract.demand) if contract.demand else frozenset()


def _reference(api: str, argument: str) -> str:
    return next(c.reference[0].url for c in load_contracts().called(api) if _demand(c, api, argument))


@lru_cache(maxsize=1)
def _arguments() -> dict[tuple[tuple[str, str], str], ArgumentEntry]:
    """Return the texts on keywords by (key of the API, keyword)."""
    file = read_record(HOME / "arguments.toml", _ArgumentFile)
    return {
        (contract_key(api), entry.name): msgspec.structs.replace(entry, page=file.pages[entry.page])
        for entry in file.argument
        for api in entry.of
    }


def look_up(name: str, kind: Kind | None = None) -> Hover | None:
    """Return what is known about a name, or None."""
    finders = {
        "python": _python_hover,
        "environment": _environment_hover,
        "deepspeed": _deepspeed_hover,
        "option": _option_hover,
    }
    kinds = (kind,) if kind else _kinds(name)
    return next((h for k in kinds if (h := finders[k](name.strip())) is not None), None)


def known_names(kind: Kind) -> tuple[str, ...]:
    """Return all full names of a kind, including those that only the facts contain, sorted."""
    known = {e.name for e in entries(kind).values()}
    if kind == "environment":
        known |= {alias for e in entries(kind).values() for alias in e.aliases}
        known |= {
            *facts.nccl_meanings(),
            *facts.vendor_meanings(),
            *facts.torch_env().variables,
            *facts.torch_env().strings,
            *facts.environment().variables,
        }
    elif kind == "python":
        known |= set(api_names())
    elif kind == "deepspeed":
        known |= set(facts.deepspeed_config().keys)
    elif kind == "option":
        known |= {f"{command} {o}" for command, launcher in facts.launchers().items() for o in launcher.options}
    return tuple(sorted(known))


def _kinds(name: str) -> tuple[Kind, ...]:
    if name.startswith("-") or " -" in name:
        return ("option",)
    return (
        ("environment", "python") if name.partition("_")[0].isupper() and "." not in name else ("python", "deepspeed")
    )


def _python_hover(name: str) -> Hover | None:
    """Look up the whole name, else ever shorter ends of it: the program may have imported it under another name."""
    known, api = entries("python"), public_api(name)
    rest = name
    while rest and not _is_of(known.get(rest), name) and not (api and api.name in facts.name_meanings()):
        rest = rest.partition(".")[2]
    entry, asks = known.get(rest), demands_of(name)
    if entry is not None and _is_of(entry, name):
        return Hover(title=name, entry=entry, asks=asks or demands_of(entry.name), url=entry.page)
    if api is None and asks:
        return Hover(title=name, asks=asks, url=_reference(name, ""))
    return Hover(title=name, asks=asks, facts=api.told, url=api.page) if api else None


def _is_of(entry: HoverEntry | None, name: str) -> bool:
    """True if the entry may be about a name: a full name of a package means nothing in another module of it."""
    if entry is None or name.partition(".")[0] not in _packages():
        return entry is not None
    owners = [each.rpartition(".")[0] for each in (entry.name, *entry.aliases)]
    owner = name.rpartition(".")[0]
    return any(f"{owner}.".startswith(f"{each}.") or f"{each}.".startswith(f"{owner}.") for each in owners)


@lru_cache(maxsize=1)
def _packages() -> frozenset[str]:
    """Return the packages of all public names."""
    return frozenset(n.partition(".")[0] for n in (*facts.public_names().names, *facts.public_names().elsewhere))


def _environment_hover(name: str) -> Hover | None:
    entry = entries("environment").get(name)
    meaning = facts.nccl_meanings().get(name) or facts.vendor_meanings().get(name)
    told = tuple(_environment_facts(name, meaning))
    if entry is None:
        if not told:
            return None
        told = (meaning.means, *told) if meaning else told
    of_torch = name.startswith("TORCH_NCCL_") or name in facts.torch_env().renamed
    torch_page = _TORCH_NCCL_DOCS if of_torch else ""
    url = entry.page if entry else meaning.url or _NCCL_DOCS if meaning else torch_page
    return Hover(title=name, entry=entry, facts=told, url=url)


def _environment_facts(name: str, meaning: Meaning | None) -> Iterator[str]:
    nccl = facts.nccl()
    if meaning:
        yield from ([f"Values: {meaning.values}."] if meaning.values else [])
        yield from ([f"Default: {meaning.default}."] if meaning.default else [])
        yield from (["Meant for debugging: take it out of scripts again."] if meaning.debugging else [])
        yield from ([f"**Often wrong:** {meaning.wrong}"] if meaning.wrong else [])
    if life := nccl.variables.get(name):
        first = life.since or f"{nccl.versions[0]} or before"
        last = life.until or f"{nccl.versions[-1]} at least"
        yield f"NCCL reads it from {first} to {last}."
    elif name in facts.nccl_meanings():
        yield f"NCCL {nccl.versions[0]} and later do not read it."
    torch = facts.torch_env()
    if name in torch.renamed:
        new = torch.renamed[name]
        yield f"torch calls it `{new.new}`" + (f" since {new.since}." if new.since else ".")
    elif place := torch.variables.get(name) or torch.strings.get(name):
        yield f"{torch.source.partition('+')[0]} reads it (`torch/{place.where}`)."
    elif row := facts.environment().variables.get(name):
        yield _read_by(row)
        if not (meaning and meaning.wrong) and (wrong := facts.wrong_of_family(name)):
            yield f"**Often wrong:** {wrong}"


def _read_by(row: ReadVariable) -> str:
    reader = facts.environment().version(row.where.partition("/")[0])
    default = f"default `{row.default}`" if row.default else ""
    more = ", ".join(part for part in (row.type, default) if part)
    renamed = f" It is called `{row.new}` now." if row.new else ""
    return f"{reader} reads it (`{row.where}`){': ' if more else ''}{more}.{renamed}"


def _deepspeed_hover(name: str) -> Hover | None:
    entry, table = entries("deepspeed").get(name), facts.deepspeed_config()
    key = table.keys.get(name)
    if entry is None and key is None and name not in table.removed:
        return None
    version = table.source.partition(";")[0]
    told = [] if entry else ["A key of the DeepSpeed configuration."]
    if name in table.removed:
        told.append(f"{version} refuses it: it was removed.")
    if key is not None:
        default = f"default {msgspec.json.encode(key.default).decode()}" if key.default is not None else ""
        told += (
            [f"{version}: {', '.join(part for part in (key.type, default) if part)}."] if key.type or default else []
        )
        told += ['"auto" is filled in by Transformers or Accelerate, not by DeepSpeed alone.'] if key.auto else []
        told += [f"Deprecated: use `{key.replaced_by}`."] if key.replaced_by else []
    return Hover(title=name, entry=entry, facts=tuple(told), url=entry.page if entry else _DEEPSPEED_DOCS)


def _option_hover(name: str) -> Hover | None:
    """Look up an option of the launcher in front of it; without a launcher, of the first that has it."""
    command, _, flag = name.rpartition(" ")
    flag = flag.partition("=")[0]
    command = _COMMANDS.get(command, command)
    for candidate, launcher in facts.launchers().items():
        option = launcher.option(flag) if command in ("", candidate) else None
        if option is None:
            continue
        spellings = (entries("option").get(_with_dashes(f"{candidate} {s}")) for s in option.spellings)
        entry = next((e for e in spellings if e), None)
        means = option.means and f"{option.means[:1].upper()}{option.means[1:]}."
        plain = means or f"An option of `{candidate}` ({launcher.source})."
        told = ["" if entry else plain]
        told.append(f"Choices: {', '.join(map(str, option.choices))}." if option.choices else "")
        told.append(f"Default: `{option.default}`." if option.default else "")
        told.append("" if option.takes_value else "It takes no value.")
        url = entry.page if entry else launcher.url
        return Hover(title=f"{candidate} {flag}", entry=entry, facts=tuple(t for t in told if t), url=url)
    return None


def _with_dashes(option: str) -> str:
    return option.replace("_", "-")


def render(found: Hover, knowledge: Knowledge) -> str:
    """Return a hover as Markdown of about 20 lines at most."""
    return "\n".join(_lines(found, knowledge))


def _lines(found: Hover, knowledge: Knowledge) -> Iterator[str]:
    yield f"**`{found.title}`**"
    entry = found.entry
    if entry:
        yield from ("", entry.is_, "", f"**Often wrong:** {entry.wrong}", "", "**Check:**", "")
        yield from (f"- {c}" for c in entry.check)
    if found.asks:
        yield from ("", *(f"- {line}" for line in found.asks))
    if found.facts:
        yield from ("", " ".join(found.facts))
    if entry:
        titles = (f"{knowledge.symptoms[code].title} ({code})" for code in entry.symptoms)
        yield from ("", f"**Seen as:** {'; '.join(titles)}")
    if found.url:
        yield from ("", f"[Documentation]({found.url})")
