"""Makes text safe to store and to show: no terminal escapes, no control characters, no secrets."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache

from dtdebug.privacy.redact import MASK, arguments, mask

__all__ = [
    "KEPT_VARIABLES",
    "MASK",
    "allowed_variables",
    "arguments",
    "clean",
    "clean_command",
    "complain",
    "escape_hidden",
    "mask",
    "one_line",
    "plain",
]

_ESCAPE = re.compile(
    r"\x1b\[[0-?]{0,32}[ -/]{0,8}[@-~]"  # CSI
    r"|\x1b[\]PX^_][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)?"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]{0,4}[0-~]?"  # the rest
    r"|\x9b[0-?]{0,32}[ -/]{0,8}[@-~]"
)
# C0 without tab and newline, DEL, C1, and the characters that reorder or hide text.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)
_ASCII_CONTROL = dict.fromkeys((*range(9), *range(11, 32), 127))
_SURROGATE = re.compile("[\ud800-\udfff]")
"""Lone surrogate, as JSON may contain it; no encoding can write it."""

KEPT_VARIABLES = re.compile(
    r"(?:RANK|LOCAL_RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|(?:GROUP|ROLE)_(?:RANK|WORLD_SIZE)|NODE_RANK|MASTER_ADDR|MASTER_PORT|TF_CONFIG"
    r"|CUDA_VISIBLE_DEVICES|HIP_VISIBLE_DEVICES|CUDA_LAUNCH_BLOCKING|OMP_NUM_THREADS|JOB_COMPLETION_INDEX|PYTORCH_CUDA_ALLOC_CONF"
    r"|(?:TORCHELASTIC|SLURM|OMPI|PMI|PMIX|MV2|NCCL|TORCH|TORCH_NCCL|GLOO|UCX|FI|HOROVOD|JAX|RAY|ACCELERATE|DS|DEEPSPEED|FSDP|TP|NVIDIA)_[A-Z0-9_]{1,64})\Z"
)
"""Environment variables that describe ranks and communication (allow-list)."""


def clean(text: str) -> str:
    """Return a text to store or show: without escapes, control characters, overwritten progress bars and secrets."""
    return mask(plain(text))


def plain(text: str) -> str:
    """Return a text to read in this process: as `clean`, but with secrets, which may explain the failure."""
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPE.sub("", text)
    if text.isascii():
        return text.translate(_ASCII_CONTROL)
    return _SURROGATE.sub("\ufffd", _CONTROL.sub("", text))


def escape_hidden(document: str) -> str:
    """Return a JSON document in which what reorders or hides text is escaped: names of files stay what they are."""
    return document if document.isascii() else _CONTROL.sub(lambda found: json.dumps(found[0])[1:-1], document)


@lru_cache(maxsize=8192)  # ranks print the same things
def one_line(text: str, most: int) -> str:
    """Return the cleaned text in one line of at most `most` characters; only the beginning of a long text is read."""
    return " ".join(clean(text[: 4 * most]).split())[:most]


def clean_command(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command line to store or show: an option masks the word after it."""
    return tuple(clean(word) for word in arguments(words))


def complain(text: str) -> None:
    """Print a message of ours on standard error, cleaned, because a name in it may hold anything."""
    print(f"dtdebug: {clean(text)}", file=sys.stderr)


_SECRET = re.compile(r"(?i)key|token|secret|passw|credential|auth|cookie|session")


def allowed_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the allow-listed variables; a value whose name suggests a secret is masked."""
    kept = {k: v for k, v in variables.items() if KEPT_VARIABLES.match(k)}
    return {k: MASK if _SECRET.search(k) else _value(k, v) for k, v in sorted(kept.items())}


def _value(name: str, value: str) -> str:
    return mask(f"{name}={clean(value)}").removeprefix(f"{name}=")[:500]
