"""Reads batch and parallel sizes from a command and its configurations, one dialect per framework.

One name has several meanings: `train_batch_size` is the global batch in a DeepSpeed configuration, and the per-rank
batch in the examples of diffusers. So a name counts only in a dialect that an unambiguous name identifies, and a size
that other options may decide is open.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import cast

import msgspec

from dtdebug.doctor.types import Launch
from dtdebug_taxonomy import named_files
from dtdebug_taxonomy.source.config.toml import read_toml

_SIZE = 1 << 20
_WORDS = 400
_MEGATRON = {
    "tensor_model_parallel_size": "tp",
    "pipeline_model_parallel_size": "pp",
    "context_parallel_size": "cp",
    "expert_model_parallel_size": "ep",
    "expert_tensor_parallel_size": "etp",
    "seq_length": "length",
    "num_attention_heads": "heads",
    "num_query_groups": "groups",
    "num_layers": "layers",
    "num_experts": "experts",
    "global_batch_size": "total",
    "micro_batch_size": "micro",
}
_MEGATRON_OWN = frozenset(("tensor_model_parallel_size", "pipeline_model_parallel_size"))
_MEGATRON_PLACES = ("", "model", "trainer.strategy")
"""Prefixes before the last dot that Hydra uses for NeMo; others belong to an inference engine."""
_TITAN = {
    "tensor_parallel_degree": "tp",
    "pipeline_parallel_degree": "pp",
    "context_parallel_degree": "cp",
    "expert_parallel_degree": "ep",
    "data_parallel_replicate_degree": "replicate",
    "data_parallel_shard_degree": "shard",
    "data_parallel_degree": "shard",
    "local_batch_size": "micro",
    "batch_size": "micro",
    "global_batch_size": "total",
}
_TITAN_PLACES = ("parallelism", "training", "experimental")
_DEEPSPEED = {
    "train_batch_size": "total",
    "train_micro_batch_size_per_gpu": "micro",
    "gradient_accumulation_steps": "steps",
}
_HARMLESS = re.compile(r"norm|^recompute|^checkpoint_num_layers|^distribute_")
_LAYERS = re.compile(r"layer|pipeline|embedding_stage|hybrid")
_BATCH = re.compile(r"rampup_batch|decrease_batch|step_batch|sequence_parallel_size|num_weight_shards|weight_remat")
"""Options of Megatron that also decide the batch, or the ranks that share one."""
_PARTED = re.compile(r"parallel|pipe|stages|ulysses|ring_attn")
_PARTED_PROGRAM = re.compile(rb"\bPipelineModule\b|\bmpu\s*=|\bsequence_parallel_size\b|\bUlysses")


class Size(msgspec.Struct, frozen=True):
    """Number and its source."""

    value: int
    place: str


class Sizes(msgspec.Struct, frozen=True):
    """Sizes in one dialect."""

    dialect: str
    """`megatron`, `deepspeed`, `torchtitan`."""
    values: dict[str, Size]
    open: frozenset[str] = frozenset()
    """`layers`, `batch`, `groups` if other options decide them."""

    def number(self, name: str) -> int | None:
        """Return a size, or None if it is missing or chosen later."""
        found = self.values.get(name)
        return found.value if found is not None and found.value > 0 else None

    def places(self, *names: str) -> str:
        """Return the sources of sizes, with their values."""
        return ", ".join(_place(self.values[n]) for n in names if n in self.values)


class _Option(msgspec.Struct, frozen=True):
    before: str
    """Prefix before the last dot."""
    name: str
    value: str
    word: str
    """The option as written."""


def sizes_of(launch: Launch) -> list[Sizes]:
    """Return the sizes of all dialects found."""
    options = list(_options(launch.arguments[:_WORDS]))
    found = [_read_megatron(options), _read_titan(options)]
    of_megatron = found[0].values if found[0] else {}
    found.append(_read_deepspeed(launch, options, of_megatron))
    return [sizes for sizes in found if sizes is not None]


def _options(words: tuple[str, ...]) -> Iterator[_Option]:
    for index, word in enumerate(words):
        name, equals, value = word.lstrip("-+").partition("=")
        if not equals and not word.startswith("--"):
            continue
        if not equals and index + 1 < len(words) and not words[index + 1].startswith("--"):
            value = words[index + 1]
        before, _, last = name.rpartition(".")
        written = word if equals or not value else f"{word} {value}"
        yield _Option(before, last.replace("-", "_"), value, written)


def _numbers(options: Iterable[_Option], names: Mapping[str, str], places: tuple[str, ...]) -> dict[str, Size]:
    """Return name -> size; the last option wins, as in argparse."""
    return {
        names[o.name]: Size(int(o.value), o.word)
        for o in options
        if o.name in names and o.before in places and re.fullmatch(r"-?\d{1,9}", o.value)
    }


def _read_megatron(options: list[_Option]) -> Sizes | None:
    values: dict[str, Size] = {}
    spoken = any(o.name in _MEGATRON_OWN and o.before in _MEGATRON_PLACES for o in options)
    for path, content in _files(options, (".yaml", ".yml")):
        mappings = [m for m in _mappings(content, 6) if _MEGATRON_OWN & m.keys()]
        if len(mappings) == 1:
            spoken = True
            values |= _flat(mappings[0], _MEGATRON, path)
    plain = _numbers(options, _MEGATRON, _MEGATRON_PLACES)
    if not spoken and not {"layers", "heads", "micro", "total"} <= plain.keys():
        return None
    values |= plain
    known = {"num_layers", "pipeline_model_parallel_size"}
    names = {o.name for o in options}
    doubts = set()
    if any(_LAYERS.search(n) and n not in known and not _HARMLESS.search(n) for n in names):
        doubts.add("layers")
    if any(_BATCH.search(n) for n in names):
        doubts.add("batch")
    if "group_query_attention" not in names:  # without it the number of groups is not used
        doubts.add("groups")
    return Sizes("megatron", values, frozenset(doubts))


def _read_titan(options: list[_Option]) -> Sizes | None:
    values: dict[str, Size] = {}
    for path, content in _files(options, (".toml",)):
        for section in _TITAN_PLACES:
            below = content.get(section) if isinstance(content, dict) else None
            if isinstance(below, dict):
                values |= _flat(below, _TITAN, path)
    values |= _numbers(options, _TITAN, _TITAN_PLACES)
    return Sizes("torchtitan", values) if values.keys() & {"tp", "pp", "cp", "replicate", "shard"} else None


def _read_deepspeed(launch: Launch, options: list[_Option], of_megatron: dict[str, Size]) -> Sizes | None:
    named = [o.value for o in options if re.search(r"deepspeed|ds_config", o.name) and o.value.endswith(".json")]
    for path in (*named, *launch.configurations):
        content = _content(Path(path))
        if not isinstance(content, dict) or not (values := _flat(content, _DEEPSPEED, path)):
            continue
        doubts = set()
        parts = {o.name for o in options if _PARTED.search(o.name) and re.fullmatch(r"[2-9]|\d\d+", o.value)}
        if parts - _MEGATRON_OWN or "tensor_parallel" in content or _PARTED_PROGRAM.search(_program(launch)):
            doubts.add("batch")
        values |= {n: of_megatron[n] for n in ("tp", "pp") if n in of_megatron}
        return Sizes("deepspeed", values, frozenset(doubts))
    return None


def _program(launch: Launch) -> bytes:
    try:
        return named_files.read_file(launch.program, _SIZE)
    except OSError:
        return b""


def _files(options: list[_Option], endings: tuple[str, ...]) -> Iterator[tuple[str, object]]:
    for option in options[:_WORDS]:
        if option.value.endswith(endings) and (content := _content(Path(option.value))) is not None:
            yield option.value, content


def _content(path: Path) -> object | None:
    import yaml

    try:
        text = named_files.read_file(path, _SIZE).decode(errors="replace")
        if path.suffix == ".json":
            return cast("object", json.loads(text))
        return read_toml(text) if path.suffix == ".toml" else yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError, RecursionError):
        return None


def _flat(mapping: Mapping[object, object], names: Mapping[str, str], path: str) -> dict[str, Size]:
    return {
        names[key]: Size(value, f"{path}: {key}")
        for key, value in mapping.items()
        if isinstance(key, str) and key in names and isinstance(value, int) and not isinstance(value, bool)
    }


def _mappings(value: object, depth: int, seen: set[int] | None = None) -> Iterator[dict[object, object]]:
    """Yield all nested mappings; those shared by YAML aliases once."""
    seen = set() if seen is None else seen
    if isinstance(value, dict) and depth and id(value) not in seen:
        seen.add(id(value))
        yield value
        for below in list(value.values())[:2000]:
            yield from _mappings(below, depth - 1, seen)


def _place(size: Size) -> str:
    return size.place if str(size.value) in re.split(r"[ =]", size.place) else f"{size.place} = {size.value}"
