"""Arguments of Lightning's `Trainer` that a release has removed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.arguments import keyword
from dtdebug_taxonomy.knowledge.facts import lightning_trainer, replacements
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_RENAMED = {"replace_sampler_ddp": "use_distributed_sampler", "checkpoint_callback": "enable_checkpointing"}
_DEVICES = {"gpus": "gpu", "tpu_cores": "tpu", "ipus": "ipu", "num_processes": "cpu"}
_EARLIER = {"distributed_backend": "1.5", "amp_level": "2.0", "truncated_bptt_steps": "1.5", "max_nb_epochs": "1.0"}
_TRAINERS = tuple(f"pytorch_lightning.{where}Trainer" for where in ("", "trainer.", "trainer.trainer."))
_STRATEGIES = re.compile(r"^(ddp\w*|dp|horovod|ddp2)$")
_KEPT = {"ddp", "ddp_spawn", "ddp_fork", "ddp_notebook"} | {
    f"ddp_{how}find_unused_parameters_{value}"
    for how in ("", "spawn_", "fork_", "notebook_")
    for value in ("true", "false")
}
"""Values that Lightning 2 still accepts as a strategy; not dp, ddp2, ddp_cpu, ddp_sharded or horovod."""
_RELEASES = re.compile(r"version|GREATER|LESS|RELEASE|(^|_)(PL|pl)_?\d", re.IGNORECASE)
_OLD_LIGHTNING = ("pytorch_lightning.plugins.training_type", "pytorch_lightning.overrides", "pytorch_lightning.lite")


def check(code: Code) -> Iterator[Hit]:
    """Report the argument."""
    calls = code.calls(*_TRAINERS)
    if not calls or code.imports_any(*_OLD_LIGHTNING):
        return
    for call in calls:
        if _asks_release(code, call):
            continue
        for name, node in _given_arguments(code, call):
            if (release := _removed_in(name)) is not None:
                hint = replacements()["lightning_trainer"].get(name)
                instead = f" Now it is {hint.use}." if hint and not hint.use.startswith("nothing") else ""
                yield Hit(
                    code.span(node),
                    f"Trainer has no argument {name} since Lightning {release} and ends with a TypeError.{instead}",
                    _fix(code, call, node) if isinstance(node, ast.keyword) and node in call.keywords else None,
                )
        backend = keyword(call, "accelerator")
        value = code.constant(backend.value) if backend else None
        if backend and isinstance(value, str) and _STRATEGIES.match(value):
            fix = Fix("Give it as strategy", (Edit(_name_span(code, backend), "strategy"),))
            yield Hit(
                code.span(backend),
                f'"{value}" is a strategy and no accelerator since Lightning 1.7: Trainer refuses it.',
                fix if value in _KEPT and keyword(call, "strategy") is None else None,
            )


def _asks_release(code: Code, call: ast.Call) -> bool:
    """True if a call is in a branch for some releases, or tried first: `if version < "2.0":`, `except TypeError:`."""
    inner: ast.AST = call
    for up in code.ancestors(call):
        if isinstance(up, ast.If) and inner is not up.test and _RELEASES.search(code.source_of(up.test)):
            return True
        if isinstance(up, ast.Try) and inner in up.body and any("TypeError" in code.source_of(h) for h in up.handlers):
            return True
        inner = up
    return False


def _given_arguments(code: Code, call: ast.Call) -> Iterator[tuple[str, ast.keyword | ast.expr]]:
    """Yield the keywords of the call, and the entries of a dictionary unpacked into it."""
    for given in call.keywords:
        if given.arg is not None:
            yield given.arg, given
            continue
        for value in code.values(given.value):
            if isinstance(value, ast.Call) and code.name(value.func) == "dict":
                yield from ((k.arg, k) for k in value.keywords if k.arg is not None)
            elif isinstance(value, ast.Dict):
                yield from ((str(k.value), k) for k in value.keys if isinstance(k, ast.Constant))


def _removed_in(name: str) -> str | None:
    table = lightning_trainer()
    known = table.arguments.get(name)
    if known is None:
        return _EARLIER.get(name)
    if not known.until:
        return None
    hint = replacements()["lightning_trainer"].get(name)
    return hint.removed if hint and hint.removed else f"after {known.until}"


def _name_span(code: Code, given: ast.keyword) -> Span:
    start = code.span(given).start
    return Span(start, start + len(str(given.arg)))


def _fix(code: Code, call: ast.Call, given: ast.keyword) -> Fix | None:
    name = str(given.arg)
    if name in _RENAMED and keyword(call, _RENAMED[name]) is None:
        return Fix(f"Call it {_RENAMED[name]}", (Edit(_name_span(code, given), _RENAMED[name]),), safe=True)
    if name == "distributed_backend" and keyword(call, "strategy") is None:
        value = code.constant(given.value)
        if value in _KEPT or not isinstance(given.value, ast.Constant):
            return Fix("Call it strategy", (Edit(_name_span(code, given), "strategy"),), safe=value in _KEPT)
        return None
    if name in _DEVICES and keyword(call, "devices") is None and _is_free(code, call):
        if sum(k.arg in _DEVICES for k in call.keywords) > 1:
            return None
        count = code.constant(given.value)
        sure = (isinstance(count, int) and count > 0) or _is_all(given.value) or isinstance(given.value, ast.List)
        if (
            (count is None or count == 0)
            and not sure
            and not dotted_name(given.value)
            and not isinstance(given.value, ast.Call)
        ):
            return None
        if isinstance(given.value, ast.Constant) and not sure:
            return None
        kind, edit = _DEVICES[name], Edit(_name_span(code, given), f'accelerator="{_DEVICES[name]}", devices')
        if not sure and kind != "cpu":
            written = code.source_of(given.value)
            text = f'accelerator="{kind}" if {written} else "cpu", devices={written} or 1'
            edit = Edit(code.span(given), text)
        if (backend := keyword(call, "accelerator")) is not None:  # with both, an accelerator would be given twice
            return Fix("Give accelerator, devices and strategy", (edit, Edit(_name_span(code, backend), "strategy")))
        return Fix("Give accelerator and devices", (edit,), safe=sure)
    return None


def _is_free(code: Code, call: ast.Call) -> bool:
    """True if no accelerator is given, or one that becomes the strategy."""
    given = keyword(call, "accelerator")
    value = code.constant(given.value) if given else None
    moves = value in _KEPT and keyword(call, "strategy") is None
    return given is None or moves


def _is_all(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
