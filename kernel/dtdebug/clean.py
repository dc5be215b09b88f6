"""Makes text safe to keep and to show: no terminal escapes, no control characters, no secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping

MASK = "***"

_ESCAPE = re.compile(
    r"\x1b\[[0-?]{0,32}[ -/]{0,8}[@-~]"  # CSI
    r"|\x1b[\]PX^_][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)?"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]{0,4}[0-~]?"  # the rest
    r"|\x9b[0-?]{0,32}[ -/]{0,8}[@-~]"
)
# C0 without tab and newline, DEL, C1, and the characters that reorder or hide text.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff]")

_ASSIGNED = re.compile(
    r"(?i)((?:api_?key|access_?key|secret|token|passw(?:or)?d|credential|private_?key)[A-Za-z0-9_]{0,32}"
    r"(?:\s{0,3}[=:]\s{0,3}|['\"]\s{0,3}:\s{0,3})['\"]?)([^\s'\",;]{4,512})"
)
_HARMLESS = re.compile(r"(?i)[\d.,eE+-]+$|true$|false$|none$|null$")
"""Values of names such as `max_tokens` that are no secrets."""
_SHAPED = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,128}|sk-[A-Za-z0-9_-]{16,128}|gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{20,255}"
    r"|AKIA[0-9A-Z]{16}|xox[abpors]-[A-Za-z0-9-]{10,128}|eyJ[A-Za-z0-9_-]{10,512}\.[A-Za-z0-9_-]{10,1024}\.[A-Za-z0-9_-]{10,512})"
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{12,1024}")
_IN_ADDRESS = re.compile(r"(://[^/\s:@]{1,128}):[^/\s@]{1,256}@")
_KEY_BLOCK = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]{0,8192}?-----END [A-Z ]{0,40}PRIVATE KEY-----")
_SECRET = re.compile(r"(?i)key|token|secret|passw|credential|auth|cookie|session")

KEPT_VARIABLES = re.compile(
    r"(?:RANK|LOCAL_RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|GROUP_RANK|ROLE_RANK|NODE_RANK|MASTER_ADDR|MASTER_PORT|TF_CONFIG"
    r"|CUDA_VISIBLE_DEVICES|HIP_VISIBLE_DEVICES|CUDA_LAUNCH_BLOCKING|OMP_NUM_THREADS|JOB_COMPLETION_INDEX|PYTORCH_CUDA_ALLOC_CONF"
    r"|(?:TORCHELASTIC|SLURM|OMPI|PMI|PMIX|MV2|NCCL|TORCH|TORCH_NCCL|GLOO|UCX|FI|HOROVOD|JAX|RAY|ACCELERATE|DS|DEEPSPEED|FSDP|TP|NVIDIA)_[A-Z0-9_]{1,64})$"
)
"""Environment variables that describe ranks and communication (allow-list)."""


def clean(text: str) -> str:
    """The text without escapes, control characters, overwritten progress bars and secrets."""
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    text = _CONTROL.sub("", _ESCAPE.sub("", text))
    return mask(text)


def mask(text: str) -> str:
    """The text with what looks like a secret replaced by `***`."""
    text = _KEY_BLOCK.sub(lambda found: MASK + "\n" * found.group(0).count("\n"), text)  # line numbers stay
    text = _ASSIGNED.sub(lambda f: f[0] if _HARMLESS.match(f[2]) else f[1] + MASK, text)
    text = _BEARER.sub(rf"\1 {MASK}", text)
    return _IN_ADDRESS.sub(rf"\1:{MASK}@", _SHAPED.sub(MASK, text))


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The allow-listed variables; a value whose name sounds secret is masked."""
    kept = {k: v for k, v in variables.items() if KEPT_VARIABLES.match(k)}
    return {k: MASK if _SECRET.search(k) else clean(v)[:500] for k, v in sorted(kept.items())}
