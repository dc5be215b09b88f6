"""Batch sizes and parallel sizes against the ranks that the command really starts.

One table of names for all dialects (DeepSpeed, Megatron, torchtitan, Hydra, Accelerate): what a key is called last,
without dashes and dots; then one set of rules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import msgspec
import yaml

from dtdebug.doctor.facts import Launch, Problem
from dtdebug_taxonomy.source.toml import read_toml

_SIZE = 1 << 20
_NAMES = {
    "tensor_model_parallel_size": "tp",
    "tensor_parallel_degree": "tp",
    "tensor_parallel_size": "tp",
    "autotp_size": "tp",
    "megatron_lm_tp_degree": "tp",
    "pipeline_model_parallel_size": "pp",
    "pipeline_parallel_degree": "pp",
    "pipeline_parallel_size": "pp",
    "megatron_lm_pp_degree": "pp",
    "context_parallel_size": "cp",
    "context_parallel_degree": "cp",
    "data_parallel_replicate_degree": "replicate",
    "data_parallel_shard_degree": "shard",
    "expert_model_parallel_size": "ep",
    "expert_parallel_degree": "ep",
    "num_attention_heads": "heads",
    "num_query_groups": "groups",
    "num_layers": "layers",
    "num_experts": "experts",
    "padded_vocab_size": "vocabulary",
    "global_batch_size": "total",
    "train_batch_size": "total",
    "micro_batch_size": "micro",
    "train_micro_batch_size_per_gpu": "micro",
    "local_batch_size": "micro",
    "gradient_accumulation_steps": "steps",
}


class Size(msgspec.Struct, frozen=True):
    """A number, and where it was read."""

    value: int
    place: str


def judge(launch: Launch) -> tuple[list[Problem], bool]:
    """(problems, whether there was anything to look at)."""
    sizes = _Sizes(_read(launch))
    return (list(_rules(sizes, launch.ranks)), bool(sizes))


def _read(launch: Launch) -> Iterator[tuple[str, Size]]:
    """Configurations first, since what the command says later overrides them."""
    words = launch.arguments[:400]
    for index, word in enumerate(words):
        name, _, value = word.lstrip("-").partition("=")
        path = Path(value or (words[index + 1] if word.startswith("-") and index + 1 < len(words) else ""))
        if path.suffix in (".json", ".yaml", ".yml", ".toml") and (read := _configuration(path)) is not None:
            for key, number in _flat(read, 8):
                if key in _NAMES:
                    yield _NAMES[key], Size(number, f"{path}: {key}")
    for index, word in enumerate(words):
        name, equals, value = word.lstrip("-+").partition("=")
        value = value if equals else words[index + 1] if word.startswith("--") and index + 1 < len(words) else ""
        key = name.rsplit(".", 1)[-1].replace("-", "_")
        if key in _NAMES and value.lstrip("-").isdecimal() and len(value) < 10:
            yield _NAMES[key], Size(int(value), word if equals else f"{word} {value}")


def _configuration(path: Path) -> object | None:
    try:
        with path.open("rb") as file:
            text = file.read(_SIZE).decode(errors="replace")
        if path.suffix == ".json":
            return cast("object", json.loads(text))
        return read_toml(text) if path.suffix == ".toml" else yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError, RecursionError):
        return None


def _flat(value: object, depth: int, seen: set[int] | None = None) -> Iterator[tuple[str, int]]:
    """Keys with numbers; what aliases of YAML share is read once."""
    seen = set() if seen is None else seen
    if isinstance(value, dict) and depth and id(value) not in seen:
        seen.add(id(value))
        for key, below in list(value.items())[:2000]:
            if isinstance(below, int) and not isinstance(below, bool):
                yield str(key), below
            else:
                yield from _flat(below, depth - 1, seen)


class _Sizes(dict[str, Size]):
    """What was read."""

    def number(self, name: str) -> int | None:
        """A size; None if it is not said, or is said to be chosen later."""
        found = self.get(name)
        return found.value if found is not None and found.value > 0 else None

    def places(self, *names: str) -> str:
        """Where sizes were read, with their values."""
        return ", ".join(self._place(self[n]) for n in names if n in self)

    def _place(self, size: Size) -> str:
        return size.place if str(size.value) in re.split(r"[ =]", size.place) else f"{size.place} = {size.value}"


def _rules(sizes: _Sizes, world: int | None) -> Iterator[Problem]:
    parts = {n: sizes.number(n) or 1 for n in ("tp", "pp", "cp")}
    product = parts["tp"] * parts["pp"] * parts["cp"]
    if world and product > 1 and world % product:
        yield Problem(
            id="DR702",
            text=f"{world} ranks can't be split into parts of {product} ({sizes.places('tp', 'pp', 'cp')})",
            measured=f"{world} ranks, {product} for one copy of the model",
            expected=f"a multiple of {product}",
        )
        return
    fixed = (sizes.number("replicate") or 1) * (sizes.number("shard") or 1)
    if world and sizes.number("shard") and product * fixed != world:
        yield Problem(
            id="DR702",
            text=f"the degrees multiply to {product * fixed}, and {world} ranks are started "
            f"({sizes.places('replicate', 'shard', 'tp', 'pp', 'cp')})",
            measured=str(product * fixed),
            expected=str(world),
        )
        return
    copies = world // product if world else None
    yield from _batch(sizes, copies, world)
    for one, other, words in (
        ("heads", "tp", "attention heads"),
        ("groups", "tp", "query groups"),
        ("layers", "pp", "layers"),
        ("vocabulary", "tp", "words of the vocabulary"),
        ("experts", "ep", "experts"),
    ):
        many, ways = sizes.number(one), sizes.number(other)
        if many and ways and many % ways:
            yield Problem(
                id="DR703",
                text=f"{many} {words} can't be cut into {ways} parts ({sizes.places(one, other)})",
                measured=f"{many} / {ways}",
                expected=f"a multiple of {ways}",
            )


def _batch(sizes: _Sizes, copies: int | None, world: int | None) -> Iterator[Problem]:
    total, micro, steps = (sizes.number(n) for n in ("total", "micro", "steps"))
    if not total or not copies:
        return
    said = sizes.places("total", "micro", "steps")
    if micro and steps and total != micro * steps * copies:
        yield Problem(
            id="DR701",
            text=f"the whole batch is {total}; {micro} x {steps} steps x {copies} ranks with data of their own "
            f"are {micro * steps * copies} ({said}; {world} ranks are started)",
            measured=str(micro * steps * copies),
            expected=str(total),
        )
    elif total % ((micro or 1) * (steps or 1) * copies):
        part = (micro or 1) * (steps or 1) * copies
        yield Problem(
            id="DR701",
            text=f"the whole batch of {total} can't be split into parts of {part}, for {copies} ranks with data "
            f"of their own ({said}; {world} ranks are started)",
            measured=f"{total} / {part}",
            expected=f"a multiple of {part}",
        )
