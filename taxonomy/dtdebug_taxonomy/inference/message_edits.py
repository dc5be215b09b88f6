"""Edits of the user's own source that a message asks for: the message says what, the source says where."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from dtdebug_taxonomy.checks import Edit, Fix
from dtdebug_taxonomy.checks.run.examine import CheckedHit, examine
from dtdebug_taxonomy.checks.run.proving import cells_with, format_cell_patches, format_patch, prove_edit
from dtdebug_taxonomy.checks.run.settings import Settings
from dtdebug_taxonomy.checks.shared.fixing import choose_device
from dtdebug_taxonomy.checks.shared.names import INIT
from dtdebug_taxonomy.checks.shared.wrapping import DDPS
from dtdebug_taxonomy.model.snapshot import Near, SourceFinding
from dtdebug_taxonomy.source.notebook import Notebook
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.parameters import Parameter, made_class, parameters_of
from dtdebug_taxonomy.source.text import Span
from dtdebug_taxonomy.stacks.frames import short
from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.near_names import near_name

_UNUSED = lazy_re(r"Parameter indices which did not receive grad for rank \d{1,6}: ?(?P<numbers>(?:\d{1,6}[ ,]*)+)")
_UNUSED_NAMES = lazy_re(r"Parameters which did not receive grad for rank \d{1,6}: ?(?P<names>[\w.]+(?:, ?[\w.]+)*)")
_NO_RANK = lazy_re(r"environment variable (?:RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT) expected, but not set")
_LAUNCHED = lazy_re(r"(?m)^\s*%%(?:px|distributed|rank|writefile|bash)|torchrun|notebook_launcher|environ\[.RANK")
_NO_ADDRESS = lazy_re(r"environment variable MASTER_(?:ADDR|PORT) expected, but not set")
_ON_CPU = lazy_re(
    r"device_ids and output_device arguments only work with[^\n]{0,200}module parameters \{device\(type='cpu'\)\}"
)
_NOT_IN_LOSS = lazy_re(r"parameters that were not used in producing (?:the )?loss")
_DUPLICATE = lazy_re(r"Duplicate GPU detected")
_CHOOSES = lazy_re(r"set_device\(|cuda:\{|cuda\([^)\s]|torch\.device\(.cuda., |CUDA_VISIBLE_DEVICES|device_ids")
_OTHER_DEVICE = lazy_re(
    r"Attempting to deserialize object on (?:a )?CUDA device[^\n]{0,40}? but "
    r"torch\.cuda\.(?:device_count|is_available)\(\) is"
)
_EARLY = lazy_re(r"`Accelerator` should only be initialized inside your training function")
_LISTS = lazy_re(
    r"['\"`=](?P<name>[\w./-]{2,60})['\"`][^\n]{0,160}?(?P<names>(?:[\[({]|[:,] )['\"`][\w./-]{1,60}['\"`]"
    r"(?:, ?['\"`][\w./-]{1,60}['\"`]){0,40})"
)
_QUOTED = lazy_re(r"['\"`]([\w./-]{1,60})['\"`]")
LISTED = "name-that-is-not-listed"
"""Cause of a finding: a message lists the names that there are, and the program writes another."""
_STARTS = ("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes", "torch.multiprocessing.Process")
_STARTS_OF_PYTHON = ("multiprocessing.Process",)
_TRAINERS = ("lightning.Trainer", "lightning.pytorch.Trainer", "pytorch_lightning.Trainer")
_STRATEGIES = frozenset({"ddp", "ddp_spawn", "ddp_fork", "ddp_notebook"})
_ARGUMENTS = ("transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments")
_NAMED = 4
"""Maximum number of parameters that are named one by one."""
_MOST, _MESSAGE = 200_000, 20_000
"""Maximum numbers of characters in which a message is looked for, and one that lists names."""


class Wanted(NamedTuple):
    """Place of the source that a message is about, and the edit that it asks for."""

    node: ast.AST
    cause: str
    message: str
    title: str
    fix: Fix | None = None


Reader = Callable[[Code, str], Iterator[Wanted]]


def edits_in(file: str, code: Code, text: str, lines: Sequence[int] = ()) -> Iterator[SourceFinding]:
    """Yield what the messages of a failure ask to edit in a file; `lines` are those that its stacks name there."""
    found = [w for read in _READERS for w in read(code, text[-_MOST:])]
    hits = _hits(code) if any(w.fix for w in found) else ()
    for wanted in found:
        after = prove_edit(code, hits, wanted.fix, Settings()) if wanted.fix else None
        line = code.text.place(code.span(wanted.node).start).line
        diff = "" if after is None else format_patch(short(file), str(code.text), after)
        yield _finding(wanted, file, line, code.text.line(line), diff, "line" if line in lines else "function")


def edits_in_cells(notebook: Notebook, names: Sequence[str], text: str) -> Iterator[SourceFinding]:
    """Yield what the messages ask to edit in the cells; `names` are those of the cells, such as `In[3]`."""
    code = notebook.code
    launched = any(_LAUNCHED.search(cell) for _, cell in notebook.cells)
    readers = _READERS if launched else (*_READERS, _missing_rank)
    found = [w for read in readers for w in read(code, text[-_MOST:])]
    hits = _hits(code) if any(w.fix for w in found) else ()
    for wanted in found:
        at = notebook.place(code, code.span(wanted.node))
        before = notebook.cells[at.cell][1]
        proven = wanted.fix is not None and prove_edit(code, hits, wanted.fix, Settings()) is not None
        after = cells_with(notebook, code, wanted.fix, code.span(wanted.node)) if wanted.fix and proven else {}
        diff = format_cell_patches(notebook, names, after)
        line = before.count("\n", 0, at.span.start) + 1
        yield _finding(wanted, f"cell {names[at.cell]}", line, before.splitlines()[line - 1], diff, "function")


def _hits(code: Code) -> list[CheckedHit]:
    return examine(code, Settings(), failed=lambda check, error: None)


def _finding(  # noqa: PLR0917
    wanted: Wanted, file: str, line: int, words: str, diff: str, near: Near
) -> SourceFinding:
    return SourceFinding(
        file=file,
        line=line,
        cause=wanted.cause,
        message=wanted.message,
        near=near,
        words=words.strip()[:200],
        fix=wanted.title,
        diff=diff,
    )


def _unused_parameters(code: Code, text: str) -> Iterator[Wanted]:
    """Name the parameters without gradient, and let DistributedDataParallel look for them."""
    indices, named = _UNUSED.search(text), _UNUSED_NAMES.search(text)
    if not (indices or named) or len(wraps := code.calls(*DDPS)) != 1:
        return
    (wrap,) = wraps
    model = code.argument(wrap, "module", 0)
    known = parameters_of(code, model) if model is not None else None
    unused: list[Parameter] = []
    if named is not None:
        names = re.findall(r"[\w.]+", named["names"])
        unused = [Parameter(n, n.partition(".")[0]) for n in names]
        known = known or unused
    elif indices is not None and known is not None:
        numbers = [int(n) for n in re.findall(r"\d+", indices["numbers"])]
        unused = [known[n] for n in numbers] if max(numbers) < len(known) else []
    told = f"{_join_names([p.name for p in unused])} got no gradient" if unused else ""
    defined = made_class(code, model) if model is not None else None
    if defined is None or not unused:
        yield Wanted(wrap, "unused-parameters", told, "")
        return
    held = dict.fromkeys(p.attribute for p in unused)
    uses = {name: _uses(code, defined, name) for name in held}
    made = [
        s
        for s in code.inside(defined, ast.Assign)
        if any(code.source_of(t) == f"self.{n}" for n in held for t in s.targets)
    ]
    if all(uses[name] and not any(_is_perhaps(code, u) for u in uses[name]) for name in held):
        first = next(
            iter(uses[next(iter(held))])
        )  # it is computed in each forward: what it gives never enters the loss
        yield Wanted(first, "layer-without-gradient", told, "")
        yield Wanted(first, "unused-parameters", told, "")
        return
    yield Wanted(wrap, "unused-parameters", told, "Let DDP look for unused parameters", _search(code, wrap))
    if made and not any(uses.values()):
        yield Wanted(made[0], "layer-without-gradient", told, "")


def _unused_by_library(code: Code, text: str) -> Iterator[Wanted]:
    """Let a library's own wrapper look for unused parameters: by Lightning's strategy, or the Trainer's option."""
    if not (_NOT_IN_LOSS.search(text) or _UNUSED.search(text)) or code.calls(*DDPS):
        return
    trainers, arguments = code.calls(*_TRAINERS), code.calls(*_ARGUMENTS)
    title = "Let DDP look for unused parameters"
    if len(trainers) == 1 and (given := code.argument(trainers[0], "strategy")) is not None:
        strategy = code.constant(given)
        if strategy in _STRATEGIES:
            edit = Edit(code.span(given), f'"{strategy}_find_unused_parameters_true"')
            yield Wanted(given, "unused-parameters", "", title, Fix(title, (edit,)))
    elif len(arguments) == 1 and not code.has_unpacking(arguments[0]):
        name = "ddp_find_unused_parameters"
        given = code.argument(arguments[0], name)
        if given is None or code.constant(given) is False:
            edit = _argument(code, arguments[0], f"{name}=True") if given is None else Edit(code.span(given), "True")
            yield Wanted(given or arguments[0], "unused-parameters", "", title, Fix(title, (edit,)))


def _join_names(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:_NAMED])} and {more} more parameters"


def _uses(code: Code, defined: ast.ClassDef, attribute: str) -> list[ast.Attribute]:
    """Return where methods of a class read an attribute of its objects."""
    return [
        n
        for n in code.inside(defined, ast.Attribute)
        if n.attr == attribute and isinstance(n.ctx, ast.Load) and code.source_of(n.value) == "self"
    ]


def _is_perhaps(code: Code, node: ast.AST) -> bool:
    """True if a forward may leave a place out."""
    return any(
        isinstance(up, ast.If | ast.IfExp | ast.For | ast.While | ast.Try | ast.BoolOp) for up in code.ancestors(node)
    )


def _search(code: Code, wrap: ast.Call) -> Fix | None:
    """Return a fix that adds `find_unused_parameters=True` to a call of DistributedDataParallel."""
    name = "find_unused_parameters"
    title = "Let DDP look for unused parameters"
    if given := next((k for k in wrap.keywords if k.arg == name), None):
        return Fix(title, (Edit(code.span(given.value), "True"),)) if code.constant(given.value) is False else None
    return None if code.has_unpacking(wrap) else Fix(title, (_argument(code, wrap, f"{name}=True"),))


def _argument(code: Code, call: ast.Call, text: str) -> Edit:
    """Return the edit that adds an argument at the end of a call, on a line of its own where the others have one."""
    last = max((code.span(a).end for a in (*call.args, *call.keywords)), default=code.span(call).end - 1)
    end = code.span(call).end - 1
    comma = code.text[last:end].strip().startswith(",")
    if comma:
        at = code.text.index(",", last) + 1
        line = code.text.line(code.text.place(last).line)
        indent = line[: len(line) - len(line.lstrip())]
        own_line = "\n" in code.text[last:end]
        return Edit(Span(at, at), f"\n{indent}{text}," if own_line else f" {text}")
    return Edit(Span(last, last), f", {text}" if call.args or call.keywords else text)


def _missing_rank(code: Code, text: str) -> Iterator[Wanted]:
    """Make a group of this one process where a kernel that no launcher started asks the environment for its rank."""
    if not _NO_RANK.search(text):
        return
    given = {"rank", "world_size", "init_method", "store"}
    calls = [c for c in code.calls(INIT) if not (given & {k.arg for k in c.keywords}) and not code.has_unpacking(c)]
    if len(calls) != 1 or len(calls[0].args) > 1:
        return
    (call,) = calls
    owner = code.source_of(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    fix = None
    if owner:
        fix = Fix(
            "Make a group of this one process",
            (_argument(code, call, f"store={owner}.HashStore(), rank=0, world_size=1"),),
        )
    yield Wanted(
        call,
        "wrong-master-address-or-missing-rank",
        "No launcher started this kernel, so nothing has set RANK",
        "Make a group of this one process; to run several, start them from a file with torchrun",
        fix,
    )


def _no_address(code: Code, text: str) -> Iterator[Wanted]:
    """Say where processes meet that the program starts itself, without a launcher that sets it."""
    if not _NO_ADDRESS.search(text) or not code.calls(*_STARTS, *_STARTS_OF_PYTHON):
        return
    calls = [c for c in code.calls(INIT) if not code.has_unpacking(c)]
    if len(calls) != 1 or len(calls[0].args) > 1:
        return
    given = {k.arg for k in calls[0].keywords}
    if not {"rank", "world_size"} <= given or given & {"init_method", "store"}:
        return
    title = "Say where the processes meet, which no launcher does here"
    fix = Fix(title, (_argument(code, calls[0], 'init_method="tcp://127.0.0.1:29500"'),))
    yield Wanted(calls[0], "wrong-master-address-or-missing-rank", "", title, fix)


def _devices_of_cpu(code: Code, text: str) -> Iterator[Wanted]:
    """Leave `device_ids` out where a model on the host is wrapped in a job that gloo connects."""
    backends = {code.constant(code.argument(c, "backend", 0)) for c in code.calls(INIT)}
    if not _ON_CPU.search(text) or backends != {"gloo"} or len(wraps := code.calls(*DDPS)) != 1:
        return
    (wrap,) = wraps
    named = [k for k in wrap.keywords if k.arg in {"device_ids", "output_device"}]
    if not named or len(wrap.args) > 1:
        return
    title = "Leave device_ids out: the model is on the CPU"
    edits = tuple(Edit(Span(_end_before(code, wrap, k), code.span(k.value).end), "") for k in named)
    yield Wanted(wrap, "module-not-on-its-device", "", title, Fix(title, edits))


def _end_before(code: Code, call: ast.Call, keyword: ast.keyword) -> int:
    """Return where the argument before a keyword ends, so that its comma goes with it."""
    others = [code.span(a).end for a in (*call.args, *(k.value for k in call.keywords))]
    return max(end for end in others if end < code.span(keyword.value).start)


def _early_accelerator(code: Code, text: str) -> Iterator[Wanted]:
    """Name the Accelerator that is made outside of the function that the launcher starts."""
    if not _EARLY.search(text):
        return
    made = [c for c in code.calls("accelerate.Accelerator") if code.function(c) is None]
    targets = {
        code.source_of(t) for c in code.calls("accelerate.notebook_launcher") if (t := code.argument(c, "function", 0))
    }
    if len(made) == 1 and len(targets) == 1:
        title = f"Make it inside {targets.pop()}(), and restart the kernel"
        yield Wanted(made[0], "device-opened-before-processes-start", "", title)


def _same_device(code: Code, text: str) -> Iterator[Wanted]:
    """Choose the device of each rank where two of them took the same one and nothing in the program chooses."""
    if not _DUPLICATE.search(text) or _CHOOSES.search(code.text) or len(starts := code.calls(INIT)) != 1:
        return
    title = "Choose the device by LOCAL_RANK"
    for cause in ("processes-see-wrong-devices", "process-not-bound-to-its-gpu"):
        yield Wanted(starts[0], cause, "", title, choose_device(code, starts[0]))


def _other_device(code: Code, text: str) -> Iterator[Wanted]:
    """Load to the host where a checkpoint names a device that this process does not have."""
    if not _OTHER_DEVICE.search(text):
        return
    loads = [c for c in code.calls("torch.load") if code.argument(c, "map_location", 1) is None]
    if len(loads) != 1 or code.has_unpacking(loads[0]):
        return
    title = "Load to the host, and copy to the rank's own device"
    fix = Fix(title, (_argument(code, loads[0], 'map_location="cpu"'),))
    yield Wanted(loads[0], "restored-to-wrong-device", "", title, fix)


def _listed_name(code: Code, text: str) -> Iterator[Wanted]:
    """Write the near one of the names that a message lists, where the program has just one string of the other name."""
    lines = text[-_MESSAGE:].splitlines()
    for found in (m for line in lines for m in [_LISTS.search(line)] if m is not None and "Error" not in m["name"]):
        names = [n for n in _QUOTED.findall(found["names"]) if n != found["name"]]
        near = near_name(found["name"], names)
        written = [n for n in code.nodes(ast.Constant) if n.value == found["name"]] if near else []
        if len(written) == 1 and found["name"] not in names:
            quote = code.text[code.span(written[0]).start]
            fix = Fix(f"Write {near!r}", (Edit(code.span(written[0]), f"{quote}{near}{quote}"),))
            said = f"There is no {found['name']!r}: there are {', '.join(map(repr, names[:_NAMED]))}"
            yield Wanted(written[0], LISTED, said, fix.title, fix if quote in "'\"" else None)
            return


_READERS: tuple[Reader, ...] = (
    _unused_parameters,
    _unused_by_library,
    _no_address,
    _devices_of_cpu,
    _early_accelerator,
    _same_device,
    _other_device,
    _listed_name,
)
