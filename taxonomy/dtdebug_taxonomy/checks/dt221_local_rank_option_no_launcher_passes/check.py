"""An option `--local_rank` as the only source of the local rank."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import environment_number
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_OTHER_LAUNCHERS = re.compile(
    r"LOCAL_RANK|--local-rank|parse_known_args|(?i:deepspeed|horovod|accelerate|use.env)|spawn\(|SLURM|OMPI|HfArgumentParser"
)
"""Signs of a launcher that passes this very option, or of another source of the rank."""
_MANY = re.compile(
    r"(?i)torch\.distributed|init_dist|world_size|distributed(dataparallel|sampler|_mode)|\bddp\b"
    r"|local_rank (not in|!=)"
)
"""Signs of a process group; without them the option may be the number of one device."""
_OPTIONS = re.compile(r"(args|opts?|options|cfg|config|conf|flags|params|hparams)$", re.IGNORECASE)
"""Names of parsed options; an object of another name has its local rank from elsewhere."""


def check(code: Code) -> Iterator[Hit]:
    """Report the option."""
    if code.role == "test" or not any(name.startswith("torch") for name in code.imports.values()):
        return
    for call in code.methods("add_argument"):
        option = next((a for a in call.args if isinstance(a, ast.Constant) and a.value == "--local_rank"), None)
        if option is None:
            continue
        if _OTHER_LAUNCHERS.search(code.text.replace("--local_rank", "")) or not _is_used(code) or _handed_on(code):
            return
        yield Hit(
            code.span(call),
            "torchrun passes no option, so that this keeps its default on every rank; torch.distributed.launch of "
            "PyTorch 2 passes --local-rank, which this parser refuses.",
            _fix(code, call, option),
            None if _MANY.search(code.text.replace("--local_rank", "")) else "hint",
        )


def _is_used(code: Code) -> bool:
    """True if `args.local_rank` decides about a device or the group and is not assigned anywhere."""
    found = [n for n in code.nodes(ast.Attribute) if n.attr == "local_rank" and _OPTIONS.search(dotted_name(n.value))]
    if not found or any(isinstance(n.ctx, ast.Store) for n in found):
        return False
    if code.calls(DIST + "init_process_group", "torch.cuda.set_device"):
        return True
    return bool(code.calls("torch.device")) and code.imports_any("torch.distributed", "torch.nn.parallel")


def _handed_on(code: Code) -> bool:
    """True if it, or all arguments, goes to a function of another module with its own source of the rank."""
    owners = {dotted_name(n.value) for n in code.nodes(ast.Attribute) if n.attr == "local_rank"} - {""}
    handed = {*owners, *(f"{owner}.local_rank" for owner in owners)}
    for call in code.nodes(ast.Call):
        given = (*call.args, *(k.value for k in call.keywords))
        if code.project is None or not any(dotted_name(a) in handed for a in given):
            continue
        defined = code.project.resolve_call(code, call)
        if defined is not None and defined.code is not code:
            there = defined.code.source_of(defined.node)
            if _OTHER_LAUNCHERS.search(there.replace("--local_rank", "")):
                return True
    return False


def _fix(code: Code, call: ast.Call, option: ast.Constant) -> Fix | None:
    """Return a fix that accepts both spellings and defaults to torchrun's variable."""
    default = next((k.value for k in call.keywords if k.arg == "default"), None)
    if not isinstance(default, ast.Constant | ast.UnaryOp):
        return None
    _, imports = environment_number(code, "LOCAL_RANK")
    end = code.span(option).end
    return Fix(
        "Take what the launchers give",
        (
            *imports,
            Edit(Span(end, end), ', "--local-rank"'),
            Edit(code.span(default), f'int(os.environ.get("LOCAL_RANK", {code.source_of(default)}))'),
        ),
    )
