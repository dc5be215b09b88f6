"""States of a model under Adam are held against the memory that is stated; without a sum there is no claim."""

from __future__ import annotations

import pytest

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot

CASES = [
    ("Full fine-tuning of a 7B model with AdamW and DDP on 8x A100 80GB is out of memory.", "112 GB"),
    ("3B parameters, Adam, mixed precision, two RTX 4090: OOM in the first step.", "48 GB"),
    ("13B, AdamW, bf16, ZeRO-1 on 2 A6000 (48 GB each): out of memory.", "130 GB"),
    ("70B model, FSDP, AdamW, 8 H100 cards, out of memory.", "140 GB"),
    ("Pure bf16 AdamW with DDP for 8B parameters on one A40: OOM.", "64 GB"),
    ("7B model with AdamW and LoRA on 8x A100 80GB is out of memory.", ""),
    ("7B model with AdamW and FSDP on 8x A100 80GB is out of memory.", ""),
    ("70B model, FSDP, AdamW, 8 nodes with 8 H100 cards each, out of memory.", ""),
    ("1B parameters, AdamW, DDP on 4 A100 80GB, out of memory with batch 64.", ""),
    ("7B model with AdamW and DDP on 8x A100 80GB hangs.", ""),
    ("We trained on 300B tokens with AdamW on 8 H100 cards and are out of memory.", ""),
]


@pytest.mark.parametrize(("text", "need"), CASES, ids=range(len(CASES)))
def test_states_against_memory(text: str, need: str) -> None:
    found = diagnose(load(), Snapshot(situation=text))
    title = found.advice[0].title if found.advice else ""
    assert title.startswith("Weights, gradients and Adam's states take") == bool(need)
    assert need in title


def test_the_fix_says_what_sharding_leaves() -> None:
    found = diagnose(load(), Snapshot(situation=CASES[0][0]))
    assert "14 GB on each" in found.advice[0].fix
