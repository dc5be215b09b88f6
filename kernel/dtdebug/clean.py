"""Makes text safe to keep and to show: no terminal escapes, no control characters, no secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

MASK = "***"

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
"""Half a character, as JSON may carry it: no encoding can write it."""

# Each pattern begins with its literal, on which `re` is fast, and is tried only if the literal is there. Repeats are
# possessive or can't meet what follows them, so that no text makes them slow.
_NAMES = (
    "api_key", "apikey", "access_key", "accesskey", "private_key", "privatekey",
    "secret", "token", "passwd", "password", "credential",
)  # fmt: skip
_NAMED = {
    name: re.compile(
        rf"{name}[a-z0-9_]{{0,32}}+(?:\s{{0,3}}[=:]\s{{0,3}}|['\"]\s{{0,3}}:\s{{0,3}})['\"]?(?P<value>[^\s'\",;]{{4,}}+)"
    )
    for name in _NAMES
}
_NAMED["bearer"] = re.compile(r"bearer(?<!\wbearer)\s++(?P<value>[a-z0-9._~+/=-]{12,}+)")
_NAMED["authorization"] = re.compile(r"authorization\W{1,8}basic\s++(?P<value>[a-z0-9._~+/=-]{4,}+)")
_HARMLESS = re.compile(r"(?:[\d.,e+-]++|true|false|none|null)\Z")
"""Values of names such as `max_tokens` that are no secrets."""
_SHAPED = {
    begin: re.compile(f"{begin}(?<!\\w{begin}){rest}")
    for begin, rest in {
        "hf_": "[A-Za-z0-9]{16,}+",
        "sk-": "[A-Za-z0-9_-]{16,}+",
        **dict.fromkeys(("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), "[A-Za-z0-9]{20,}+"),
        "github_pat_": "[A-Za-z0-9_]{20,}+",
        "AKIA": "[0-9A-Z]{16}",
        "xox": "[abpors]-[A-Za-z0-9-]{10,}+",
    }.items()
}
_WEB_TOKEN = re.compile(r"eyJ(?<!\weyJ)[A-Za-z0-9_-]{10,}+(?:\.[A-Za-z0-9_-]{10,}+)*+")
_IN_ADDRESS = re.compile(r"(://[^/\s:@]*+):[^/\s]{1,512}@")
# Up to its end or, where that is cut off, as far as it looks like a key.
_KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"
    r"(?:[^-]*+(?:-(?!----)[^-]*+)*+-----END [A-Z ]{0,40}PRIVATE KEY-----|(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{16,}+)++)"
)
KEPT_VARIABLES = re.compile(
    r"(?:RANK|LOCAL_RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|GROUP_RANK|ROLE_RANK|NODE_RANK|MASTER_ADDR|MASTER_PORT|TF_CONFIG"
    r"|CUDA_VISIBLE_DEVICES|HIP_VISIBLE_DEVICES|CUDA_LAUNCH_BLOCKING|OMP_NUM_THREADS|JOB_COMPLETION_INDEX|PYTORCH_CUDA_ALLOC_CONF"
    r"|(?:TORCHELASTIC|SLURM|OMPI|PMI|PMIX|MV2|NCCL|TORCH|TORCH_NCCL|GLOO|UCX|FI|HOROVOD|JAX|RAY|ACCELERATE|DS|DEEPSPEED|FSDP|TP|NVIDIA)_[A-Z0-9_]{1,64})\Z"
)
"""Environment variables that describe ranks and communication (allow-list)."""


def clean(text: str) -> str:
    """The text without escapes, control characters, overwritten progress bars and secrets."""
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPE.sub("", text)
    if text.isascii():
        return mask(text.translate(_ASCII_CONTROL))
    return mask(_SURROGATE.sub("\ufffd", _CONTROL.sub("", text)))


@lru_cache(maxsize=8192)  # ranks say the same things
def one_line(text: str, most: int) -> str:
    """The text, clean and in one line of at most so many characters; of a long one only the beginning is read."""
    return " ".join(clean(text[: 4 * most]).split())[:most]


def mask(text: str) -> str:
    """The text with what looks like a secret replaced by `***`."""
    if "PRIVATE KEY" in text:
        text = _KEY_BLOCK.sub(lambda found: MASK + "\n" * found.group(0).count("\n"), text)  # line numbers stay
    for begin, pattern in _SHAPED.items():
        if begin in text:
            text = pattern.sub(MASK, text)
    if "eyJ" in text:
        text = _WEB_TOKEN.sub(lambda f: MASK if f[0].count(".") > 1 else f[0], text)
    if "://" in text:
        text = _IN_ADDRESS.sub(rf"\1:{MASK}@", text)
    lower = _lowered(text)
    for literal, pattern in _NAMED.items():
        if literal in lower:
            text = _mask_values(text, lower, pattern)
            lower = _lowered(text)
    return text


def _lowered(text: str) -> str:
    """The text in lower case at the same offsets: one letter alone grows when lowered."""
    return text.replace("\u0130", "i").lower()


def _mask_values(text: str, lower: str, pattern: re.Pattern[str]) -> str:
    """Masks the values that a lower-case pattern finds, whatever the case of the text."""
    parts, end = [], 0
    for found in pattern.finditer(lower):
        if not _HARMLESS.match(found["value"]):
            parts += [text[end : found.start("value")], MASK]
            end = found.end()
    return "".join([*parts, text[end:]])


_SECRET = re.compile(r"(?i)key|token|secret|passw|credential|auth|cookie|session")


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The allow-listed variables; a value whose name sounds secret is masked."""
    kept = {k: v for k, v in variables.items() if KEPT_VARIABLES.match(k)}
    return {k: MASK if _SECRET.search(k) else clean(v)[:500] for k, v in sorted(kept.items())}
