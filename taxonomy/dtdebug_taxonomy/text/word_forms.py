"""Words in one common form: one word for each concept of the field, and the stem of any other.

To the reader of words "all processes freeze" and "every rank is stuck" are the same in this form. Concepts are listed
once here, not in each pattern.
"""

from __future__ import annotations

import re
from functools import lru_cache

_CONCEPTS = {
    "rank": "ranks process processes proc procs worker workers replica replicas peer peers subprocess subprocesses",
    "gpu": "gpus card cards device devices accelerator accelerators npu npus tpu tpus hpu hpus",
    "hang": "hangs hung hanging stuck freeze freezes frozen freezing stall stalls stalled stalling block blocks blocked"
    " blocking deadlock deadlocks deadlocked standstill wait waits waiting waited",
    "node": "nodes machine machines host hosts server servers computer computers box boxes pod pods instance instances",
    "fail": "fails failed failing failure crash crashes crashed crashing error errors die dies died break breaks broke"
    " abort aborts aborted",
    "save": "saves saved saving write writes wrote written writing store stores stored",
    "load": "loads loaded loading restore restores restored restoring read reads reading",
    "resume": "resumes resumed resuming continue continues continued continuing restart restarts restarted restarting",
    "checkpoint": "checkpoints ckpt ckpts snapshot snapshots",
    "evaluate": "evaluates evaluation evaluating eval validation validate validates validating val",
    "data": "dataset datasets sample samples corpus example examples",
    "loader": "loaders dataloader dataloaders",
    "slow": "slower slowly sluggish slows",
    "differ": "differs different differently unequal uneven mismatch mismatched unlike another other others",
    "only": "alone solely",
    "main": "master chief zero first primary",
    "all": "every each everyone",
    "same": "identical equal",
    "gradient": "gradients grad grads",
    "loss": "losses",
    "schedule": "scheduler schedulers schedules lr warmup",
}
_CONCEPT = {word: concept for concept, words in _CONCEPTS.items() for word in (concept, *words.split())}
_PLAIN = (
    "a an and are as at be been being but by can could did do does for from had has have how i if in into is it its"
    " my of on or our out over that the their them then there they this to up was we were what when where which who"
    " will with would you"
)
_UNTOLD = frozenset(_PLAIN.split())
"""Words that say nothing alone."""
_WORD = re.compile(r"[a-z]+|\d+")
_WITHIN = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ENDINGS = ("ings", "ing", "ed", "es", "s", "ly")
_STEM = 4
"""Least letters that a stem keeps."""
_LONGEST = 4_000
"""Characters of a text that are read: half of them at its beginning, half at its end."""


def common_words(text: str) -> list[str]:
    """Return the words of a text in their common form; all numbers are one."""
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]}\n{text[-_LONGEST // 2 :]}"
    found = _WORD.findall(_WITHIN.sub(" ", text).lower().replace("n't", " not"))
    return ["0" if word.isdigit() else _common(word) for word in found if word not in _UNTOLD]


@lru_cache(maxsize=8192)
def _common(word: str) -> str:
    """Return `<concept>`, or the stem."""
    if word in _CONCEPT:
        return f"<{_CONCEPT[word]}>"
    ending = next((e for e in _ENDINGS if word.endswith(e) and len(word) - len(e) >= _STEM), "")
    return word[: len(word) - len(ending)]
