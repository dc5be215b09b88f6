"""Arguments of transformers' Trainer in a launch command that contradict the DeepSpeed configuration it names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.configured import Setting, accelerate_file, deepspeed_file, setting
from dtdebug_taxonomy.checks.shared.programs import processes, unknown_words
from dtdebug_taxonomy.source.config.document import Config
from dtdebug_taxonomy.source.config.tree import UNKNOWN
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.shell.commands import Word
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.started_programs import StartedProgram, document, long_options, started_programs

_KEYS = {
    "train_micro_batch_size_per_gpu": "per_device_train_batch_size",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "gradient_clipping": "max_grad_norm",
    "optimizer.params.lr": "learning_rate",
    "optimizer.params.weight_decay": "weight_decay",
    "scheduler.params.warmup_max_lr": "learning_rate",
    "scheduler.params.warmup_num_steps": "warmup_steps",
}
"""Key of DeepSpeed -> Trainer argument that it must agree with."""
_OF_ACCELERATE = {
    "deepspeed_config.gradient_accumulation_steps": "gradient_accumulation_steps",
    "deepspeed_config.gradient_clipping": "max_grad_norm",
}
_BATCH = ("per_device_train_batch_size", "gradient_accumulation_steps")
_FLAGS = ("fp16", "bf16")
_PARSER = re.compile(r"\b(HfArgumentParser|H4ArgumentParser|TrlParser)\b")
_TRAINER = re.compile(r"Trainer\b")
_CHANGED = re.compile(rf"\.({'|'.join(sorted({*_KEYS.values(), *_FLAGS, 'deepspeed'}))})\s*=[^=]")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_POSITIONAL = re.compile(r"\bH4ArgumentParser\b|\.parse_(yaml|json)_file\b")
"""Signs of a program that reads its arguments from the file passed first."""
_CALLS = 8
"""Maximum number of calls of imported functions to follow to the module that trains."""


class _Argument(NamedTuple):
    """Argument passed to the Trainer."""

    word: Word
    """Option, or the name of the file that contains the value."""
    value: str | None
    where: str
    """`here`, or `in recipe.yaml line 7`."""


Arguments = dict[str, _Argument]


def check(script: Script) -> Iterator[Hit]:
    """Report the argument."""
    for start in started_programs(script):
        file = deepspeed_file(script, start)
        root = file or accelerate_file(script, start)
        if root is None or unknown_words(start.arguments) or not _trains_so(start.code):
            continue
        arguments = _arguments(script, start)
        if "auto_find_batch_size" in arguments or (file is None and not _by_accelerate(start, root, arguments)):
            continue
        for key, name in (_OF_ACCELERATE if file is None else _KEYS).items():
            held, argument = setting(root, key), arguments.get(name)
            if held is not None and argument is not None and _differs(held.node.value, argument.value or ""):
                yield _hit(start, argument, f"{name} is {argument.value}", key, held)
        if file is not None:
            yield from _precision(start, file, arguments)
            yield from _total(script, start, file, arguments)


def _arguments(script: Script, start: StartedProgram) -> Arguments:
    """Return the arguments in the command, and those in the arguments file that it names."""
    found = {n[2:].replace("-", "_"): _Argument(w, v, "here") for w, n, v in long_options(script, start.arguments)}
    text = start.code.text if start.code is not None else ""
    first = start.arguments[0] if start.arguments and _POSITIONAL.search(text) else None
    named = found.get("config") if "TrlParser" in text else _Argument(first, first.text, "") if first else None
    file = document(script, start, script.resolve(named.value)) if named is not None and named.value else None
    if file is None or named is None:
        return found
    told: Arguments = {}
    for key, entry in file.roots[0].entries.items():
        if isinstance(entry.node.value, str | int | float):
            told[key] = _Argument(named.word, str(entry.node.value).lower(), f"in {Setting(entry.node, file).where}")
    return {**told, **found}


def _by_accelerate(start: StartedProgram, file: Config, arguments: Arguments) -> bool:
    """True if Accelerate makes DeepSpeed's configuration from its own file."""
    kind, options = setting(file, "distributed_type"), start.launch.options if start.launch is not None else {}
    chosen = {"--gradient_accumulation_steps", "--gradient_clipping", "--multi_gpu", "--use_fsdp", "--cpu"}
    return "deepspeed" not in arguments and not chosen & set(options) and bool(kind and kind.node.value == "DEEPSPEED")


def _trains_so(code: Code | None) -> bool:
    """True if a program reads the Trainer's arguments from its command line and leaves them unchanged."""
    if code is None:
        return False
    texts = [code.text]
    if not _PARSER.search(code.text) and code.project is not None:  # it may only call the function of a module
        calls = [c for c in code.calls(*code.imports.values()) if dotted_name(c.func) in code.imports][:_CALLS]
        texts += [found.code.text for c in calls if (found := code.project.resolve_call(code, c)) is not None]
    reads = any(_PARSER.search(t) and _TRAINER.search(t) for t in texts)
    return reads and not any(_CHANGED.search(t) for t in texts)


def _differs(held: object, value: str) -> bool:
    if held in {None, "auto"} or held is UNKNOWN or isinstance(held, bool) or not _NUMBER.fullmatch(value):
        return False
    return isinstance(held, str) or (isinstance(held, int | float) and float(held) != float(value))


def _precision(start: StartedProgram, file: Config, arguments: Arguments) -> Iterator[Hit]:
    for name in _FLAGS:
        held = setting(file, f"{name}.enabled")
        if held is None or name not in arguments or not isinstance(held.node.value, bool):
            continue
        value = arguments[name].value
        asked = value is None or value.startswith("-") or value.lower() in {"true", "1", "yes"}
        if asked and not held.node.value:
            yield _hit(start, arguments[name], f"{name} is asked for", f"{name}.enabled", held)


def _total(script: Script, start: StartedProgram, file: Config, arguments: Arguments) -> Iterator[Hit]:
    """Report the total batch size if it contradicts the number of processes that the command starts."""
    held, ranks = setting(file, "train_batch_size"), processes(script, start)
    parts = [arguments[n].value or "" for n in _BATCH if n in arguments]
    if held is None or not ranks or len(parts) < len(_BATCH) or not all(p.isdecimal() for p in parts):
        return
    whole = int(parts[0]) * int(parts[1]) * ranks
    if isinstance(held.node.value, int) and whole != held.node.value:
        product = " x ".join((*parts, str(ranks)))
        yield _hit(start, arguments[_BATCH[0]], f"the whole batch is {product} = {whole}", "train_batch_size", held)


def _hit(start: StartedProgram, argument: _Argument, told: str, key: str, held: Setting) -> Hit:
    inside = start.command.span.start <= argument.word.span.start < start.command.span.end
    shown = str(held.node.value).lower() if isinstance(held.node.value, bool) else repr(held.node.value)
    where = argument.where[0].upper() + argument.where[1:]
    return Hit(
        argument.word.span if inside or start.launch is None else start.launch.place,
        f"{where} {told}, and {key} is {shown} in {held.where}: the Trainer refuses a configuration that differs from "
        'its arguments. Write "auto" there.',
    )
