"""Data that each rank shuffles with its own generator before a sampler splits it by position."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.lightning import many_devices
from dtdebug_taxonomy.checks.shared.names import SAMPLER
from dtdebug_taxonomy.checks.shared.ranks_seen import starts_ranks
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name

_SHUFFLES = ("random.shuffle", "numpy.random.shuffle", "random.sample", "numpy.random.permutation")
_SEEDS = re.compile(r"seed|RandomState|default_rng|random\.Random\b", re.IGNORECASE)
_DATA = re.compile(r"(^|\.)\w*Dataset$")
_TRAINERS = ("transformers.Trainer", "transformers.Seq2SeqTrainer", "trl.SFTTrainer")
_SPLITS_ITSELF = ("IterableDataset", "get_world_size", "num_replicas", "world_size")


def check(code: Code) -> Iterator[Hit]:
    """Report the call that shuffles."""
    shuffles = [c for c in code.calls(*_SHUFFLES) if _in_a_dataset(code, c)]
    if not shuffles or _SEEDS.search(code.text) or any(word in code.text for word in _SPLITS_ITSELF):
        return
    if not (starts_ranks(code) or code.calls(SAMPLER, *_TRAINERS) or many_devices(code)):
        return
    for call in shuffles:
        if guards(code).around(call):
            continue
        yield Hit(
            code.span(call),
            "Each rank makes this data set and shuffles it by a seed of its own, for nothing here sets one; the "
            "samples are then shared out by their position, so ranks get the same ones and others are never used.",
        )


def _in_a_dataset(code: Code, call: ast.Call) -> bool:
    """True if the constructor of a data set makes the call."""
    function, home = code.function(call), code.class_of(call)
    if function is None or function.name != "__init__" or home is None:
        return False
    return any(_DATA.search(dotted_name(b) or code.name(b)) for b in home.bases)
