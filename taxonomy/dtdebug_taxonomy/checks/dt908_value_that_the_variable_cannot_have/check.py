"""Values of well-known variables that their readers refuse or misinterpret."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.near_names import distance
from dtdebug_taxonomy.knowledge import facts
from dtdebug_taxonomy.model.launch_variables import LOCAL_RANK, LOCAL_WORLD_SIZE, NODE_RANK, RANK, WORLD_SIZE
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.source import Source

_TRUE, _FALSE = frozenset({"true", "yes", "on"}), frozenset({"false", "no", "off"})
_LEVELS = frozenset({"VERSION", "WARN", "INFO", "ABORT", "TRACE", "NONE", "ATTN"})
_NUMBERS = frozenset(
    {
        *("TORCH_NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "TORCH_NCCL_TRACE_BUFFER_SIZE"),
        *("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_COORD_CHECK_MILSEC", "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC"),
        *(*RANK, *WORLD_SIZE, *LOCAL_RANK, *LOCAL_WORLD_SIZE, *NODE_RANK),
    }
)
_ALLOCATOR = frozenset(
    {
        *("backend", "max_split_size_mb", "max_non_split_rounding_mb", "roundup_power2_divisions"),
        *("garbage_collection_threshold", "expandable_segments", "release_lock_on_cudamalloc"),
        *("pinned_use_cuda_host_register", "pinned_num_register_threads", "pinned_use_background_threads"),
        *("pinned_reserve_segment_size_mb", "graph_capture_record_stream_reuse", "per_process_memory_fraction"),
    }
)

_OPEN = re.compile(r"[$<{%]|^[A-Z]+(_[A-Z]+)+$|(?i:^your)")
"""Signs of a placeholder, filled in by the shell, a template or the user."""


def check(source: Source) -> Iterator[Hit]:
    """Apply the rule of each variable that is set to a known value; a test may set what must be refused."""
    if isinstance(source, Code) and source.role == "test":
        return
    for variable in source.variables:
        value, span = variable.value, variable.value_span
        rule = _RULES.get(variable.name) or (_switch if variable.name.startswith("NCCL_") else None)
        if rule is None or value is None or not variable.is_set or _OPEN.search(value):
            continue
        wrong, right = rule(variable.name, value)
        if wrong:
            fix = Fix(f"Write {right}", (Edit(span, right),)) if right and span else None
            yield Hit(span if span and span.start < span.end else variable.span, wrong, fix)
    if isinstance(source, Script):
        yield from _list_with_blanks(source)


Rule = Callable[[str, str], tuple[str, str]]
"""(name, value) -> (problem, replacement); empty strings for none."""


def _debug(name: str, value: str) -> tuple[str, str]:
    if value.upper() in {"OFF", "INFO", "DETAIL", ""}:
        return "", ""
    return f"{name} can be OFF, INFO or DETAIL: with {value!r} the import of torch.distributed fails.", ""


def _port(name: str, value: str) -> tuple[str, str]:
    number = int(value) if re.fullmatch(r"\d{1,9}", value) else -1
    if 0 <= number < 65536 or not value:
        return "", ""
    return f"{value!r} is no port: init_process_group() fails when it reads {name}.", ""


def _number(name: str, value: str) -> tuple[str, str]:
    if re.fullmatch(r"\s*[+-]?\d+\s*", value) or not value:
        return "", ""
    return f"torch reads {name} as a whole number and fails on {value!r}.", _switch_value(value)


def _switch_value(value: str) -> str:
    return "1" if value.lower() in _TRUE else "0" if value.lower() in _FALSE else ""


def _switch(name: str, value: str) -> tuple[str, str]:
    """Check a 0-or-1 variable of NCCL."""
    meaning = facts.nccl_meanings().get(name)
    is_switch = name.endswith(("_DISABLE", "_ENABLE")) or (meaning is not None and meaning.values.startswith("0 or 1"))
    if value.lower() not in _TRUE or not is_switch or name not in facts.nccl().variables:
        return "", ""
    return f"{name} is a number: NCCL takes the text {value!r} for 0 or for the default, not for 1.", "1"


def _level(name: str, value: str) -> tuple[str, str]:
    if value.upper() in _LEVELS or not value:
        return "", ""
    return f"NCCL knows no level {value!r} and prints nothing: VERSION, WARN, INFO and TRACE are the levels.", ""


def _threads(name: str, value: str) -> tuple[str, str]:
    if re.fullmatch(r"\s*[1-9]\d*\s*(,\s*[1-9]\d*\s*)*", value) or not value:
        return "", ""
    return f"{name} has to be a positive number: with {value!r} it is ignored, and every rank takes all processors.", ""


def _allocator(name: str, value: str) -> tuple[str, str]:
    if "=" in value and ":" not in value:
        return f"Keys and values of {name} are joined by ':': with {value!r} the first use of CUDA fails.", (
            value.replace("=", ":")
        )
    for key in re.findall(r"(?:^|,)\s*([A-Za-z_]\w*)\s*:", value):
        near = [k for k in _ALLOCATOR if distance(key, k, 2) <= 2 or k == f"{key}_mb"]
        if key not in _ALLOCATOR and near:
            right = re.sub(rf"\b{key}(?=\s*:)", near[0], value)
            return f"{name} has no option {key}, {near[0]} is meant: the first use of CUDA fails.", right
    return "", ""


_RULES: dict[str, Rule] = {
    "TORCH_DISTRIBUTED_DEBUG": _debug,
    "MASTER_PORT": _port,
    "NCCL_DEBUG": _level,
    "OMP_NUM_THREADS": _threads,
    "PYTORCH_CUDA_ALLOC_CONF": _allocator,
    "PYTORCH_ALLOC_CONF": _allocator,
} | dict.fromkeys(_NUMBERS, _number)


def _list_with_blanks(script: Script) -> Iterator[Hit]:
    """Report `CUDA_VISIBLE_DEVICES=0, 1 python train.py`: the shell runs a program named 1."""
    for command in script.commands:
        for assignment in command.assignments:
            is_list = assignment.name.endswith("VISIBLE_DEVICES") and assignment.value.text.endswith(",")
            following = command.words[1:] if command.name == "export" else command.words
            if is_list and any(w.text.strip(",").isdigit() for w in following):
                yield Hit(
                    assignment.value.span,
                    "The value ends at the blank: the shell takes the next number for a command or a name of its own. "
                    "Write the list without blanks.",
                )
