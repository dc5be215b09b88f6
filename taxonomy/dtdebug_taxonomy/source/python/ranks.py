"""Classifies expressions: a rank, a test for the main process, or a test for several processes.

By value if known (`me = dist.get_rank()`), else by name (`args.local_rank`).
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from dtdebug_taxonomy.model.launch_variables import LOCAL_RANK, NODE_RANK, RANK
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_RANK_NAME = re.compile(
    r"(global_?|world_?|dist(ributed)?_?|ddp_?|my_?|own_?|this_?|cur(rent)?_?|process_?|worker_?)*"
    r"(rank|rank_?id|process_?index|process_?idx|proc_?id|process_?id)"
)
_LOCAL_NAME = re.compile(
    r"(my_?|ddp_?|dist_?)?local_?(rank|rank_?id|process_?index|process_?id|ordinal)|node_local_rank|gpu|gpu_?id|device_?id"
)
_NODE_NAME = re.compile(r"(node|machine|host|group)_?(rank|index|idx)")
_GROUP_NAME = re.compile(
    r"(tp|pp|dp|cp|ep|mp|sp|etp|edp|tensor|pipe|pipeline|data|model|expert|sequence|context|stage|shard|replica|"
    r"replicate|mesh|ulysses|ring|slice|fsdp|hsdp)(_model)?(_parallel)?_rank"
)
_RANK_CALL = re.compile(
    r"((safe_)?get_(global_|world_|local_|node_|node_local_|data_parallel_|tensor_model_parallel_|pipeline_model_parallel_)?"
    r"(rank|ordinal)|process_index|Get_rank)"
)
_WHO = r"(main|master|primary|chief|coordinator|leader)"
_SOME = r"(main|master|primary|chief|coordinator|leader|lead|root|first|head|zero|logging|saving|writer)"
_UNIT = r"_?(process|proc|rank|worker|replica|host|node|ordinal)"
_MAIN = re.compile(
    rf"_*((is|am|i_am|on|at)_?)((this|the)_)?(global_|local_|world_|dist_|distributed_)?({_WHO}|{_SOME}{_UNIT})"
    r"|_*((is|am|on|at)_?)?(global_|local_|world_|dist_)?rank_?(0|zero)(_process|_proc)?"
    r"|_*(is_)?(global|world_process|local_process|process)_zero"
    r"|_*(main|master|primary|chief|root|lead|leader)_?(process|proc|replica)"
)
_PROCESSES = re.compile(r"(?i)^_?(dist|distributed|comm|env|world|mpi)$")
"""Owners of `is_root()` if it concerns processes, not a tree."""
_ASKS = re.compile(r"_*(is|am|i_am|on|at)_?", re.IGNORECASE)
_ARGUMENTS = re.compile(r"(\w+\.)*_?(\w+_)?args\.should_(save|log)")
"""Names of `transformers.TrainingArguments` for the main process
(https://huggingface.co/docs/transformers/main_classes/trainer#transformers.TrainingArguments)."""
_MANY = re.compile(
    r"_*(is_|use_|using_|has_|in_|with_|run_|enable_)*"
    r"(dist|distributed|ddp|fsdp|parallel|multi_?gpus?|multi_?process(ing)?|multiprocessing_distributed|initialized|"
    r"dist_?initialized|distributed_initialized|is_initialized|dist_avail_and_initialized|dist_available_and_initialized|"
    r"distributed_run|distributed_training|distributed_mode|multi_gpu_training)"
)
_SIZE = re.compile(
    r"_*(dist_|ddp_|global_|get_)*(world_?size|num_replicas|num_processes|nprocs|n_?gpus?|num_gpus|size|ws)"
)
_KEY = re.compile(r"(local|global|world|node|process)_(rank|index)")
"""Keys of a configuration that are not the rank of a matrix or of a search result."""
_NO_RANK = re.compile(r"(?i)matrix_rank|lora|adapter|peft|svd|tucker|low_?rank|argsort|(^|\.)(len|dim|ndim)$")
_FOLLOWED = 3
"""Maximum number of assignments and calls to follow."""
_VARIABLES = dict.fromkeys(RANK, "global") | dict.fromkeys(LOCAL_RANK, "local") | dict.fromkeys(NODE_RANK, "node_rank")


def rank(code: Code, node: ast.expr | None) -> str:
    """Return which rank of this process an expression is; empty if it is not a rank.

    `global`, `local`, the name of a different one (`tp_rank`, `node_rank`), or `group` for the
    rank in a group that is passed.
    """
    if node is None or isinstance(node, ast.Constant):
        return ""
    return code.results.get(("rank", node, None), lambda: _rank(code, node, _FOLLOWED))


def _rank(code: Code, node: ast.expr | None, depth: int) -> str:
    if isinstance(node, ast.Call):
        return _rank_of_call(code, node, depth)
    if isinstance(node, ast.Subscript):
        return _of_mapping(code, node)
    if isinstance(node, ast.IfExp):
        return _rank(code, node.body, depth) or _rank(code, node.orelse, depth)
    if isinstance(node, ast.BoolOp):
        return _rank(code, node.values[0], depth)
    if isinstance(node, ast.Attribute) and not dotted_name(node):
        return _by_name(node.attr.lower().strip("_"))  # attribute of a call's result
    if node is None or not (name := dotted_name(node)):
        return ""
    bound = code.bound(node)
    if any(b.how in {"loop", "with", "import", "definition"} for b in bound):
        return ""
    values = [b.value for b in bound if b.how == "assign"]
    if depth and values and len(values) == len(bound):
        found = {_rank(code, v, depth - 1) for v in values if not isinstance(v, ast.Constant)} - {""}
        if len(found) == 1:
            return found.pop()
        if all(_is_other(code, v) for v in values):
            return ""
    if _NO_RANK.search(name):
        return ""  # of an adapter or a matrix, such as `config.lora.rank`
    return _by_name(name.rsplit(".", 1)[-1].lower().strip("_"))


def _of_mapping(code: Code, node: ast.Subscript) -> str:
    """Return the rank stored in a mapping under a key: the environment, or a configuration."""
    key = code.constant(node.slice) if isinstance(node.slice, ast.Constant | ast.Name) else None
    if not isinstance(key, str) or code.name(node.value) == "os.environ":
        return _VARIABLES.get(str(key), "")
    return _by_name(key.lower()) if _KEY.fullmatch(key) else ""


@lru_cache(maxsize=1 << 14)
def may_tell_rank(word: str) -> bool:
    """True if a name, or a text (an environment variable), can make an expression a rank or the main process."""
    bare = word.lower().strip("_")
    return bool(
        word in _VARIABLES
        or bare in {"is_root", "should_save", "should_log"}
        or _by_name(bare)
        or _RANK_CALL.fullmatch(word.lstrip("_"))
        or _MAIN.fullmatch(word.lower())
    )


def _by_name(last: str) -> str:
    if _LOCAL_NAME.fullmatch(last):
        return "local"
    if _NODE_NAME.fullmatch(last):
        return "node_rank"
    if _RANK_NAME.fullmatch(last):
        return "global"
    return last if _GROUP_NAME.fullmatch(last) else ""


def _is_other(code: Code, value: ast.expr | None) -> bool:
    """True if a value is definitely not the rank of a process: the rank of a matrix, a positive number."""
    if isinstance(value, ast.Constant):
        return isinstance(value.value, int) and value.value > 0
    if isinstance(value, ast.List | ast.Tuple | ast.Set | ast.Dict | ast.ListComp):
        return True
    if isinstance(value, ast.Call):
        return bool(_NO_RANK.search(code.name(value.func)))
    return bool(value is not None and _NO_RANK.search(dotted_name(value)))


def _rank_of_call(code: Code, call: ast.Call, depth: int) -> str:
    called = code.name(call.func)
    if called in {"int", "str"} and len(call.args) == 1:
        return _rank(code, call.args[0], depth)
    if called in {"os.environ.get", "os.getenv", "os.environ.setdefault", "os.environ.pop"} and call.args:
        return _VARIABLES.get(str(code.constant(call.args[0])), "")
    last = called.rsplit(".", 1)[-1] or (call.func.attr if isinstance(call.func, ast.Attribute) else "")
    if called.startswith(("horovod.", "hvd.")) and last in {"rank", "local_rank"}:
        return "global" if last == "rank" else "local"
    if not _RANK_CALL.fullmatch(last.lstrip("_")):
        found = {_rank(code, v, depth - 1) for v in code.returned_values(call)} if depth else set()
        return found.pop() if len(found) == 1 else ""
    if last == "get_rank" and (call.args or call.keywords):
        return "group"
    if last == "get_global_rank" and (call.args or call.keywords):
        return ""  # of the named member of a group
    if "node_local" in last or "local" in last:
        return "local"
    return "node_rank" if "node" in last else "group" if "parallel" in last else "global"


def is_main(name: str, *, called_with: int = 0) -> str:
    """Return which main process a name asks for: `global`, `local` (of its node), or empty."""
    owner, _, last = name.rpartition(".")
    if last == "is_root" and _PROCESSES.search(owner.rpartition(".")[2]):
        return "global"
    if _ARGUMENTS.fullmatch(name):
        return "global"
    if not _MAIN.fullmatch(last.lower()) or (called_with and not _ASKS.match(last)):
        return ""
    return "local" if "local" in last.lower() else "global"


def several(code: Code, node: ast.expr) -> bool | None:
    """Return what a condition implies about the number of processes: True for several, False for one, else None."""
    return code.results.get(("several", node, None), lambda: _several(code, node, 2))


def _several(code: Code, node: ast.expr, depth: int) -> bool | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        found = _several(code, node.operand, depth)
        return None if found is None else not found
    if isinstance(node, ast.BoolOp):
        all_found = {_several(code, v, depth) for v in node.values}
        return all_found.pop() if len(all_found) == 1 else None
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _several_by_number(code, node.left, node.ops[0], node.comparators[0])
    if isinstance(node, ast.Subscript):  # entry of a configuration
        return True if _MANY.fullmatch(str(code.constant(node.slice)).lower()) else None
    called = node.func if isinstance(node, ast.Call) else node
    name = code.name(called)
    last = name.rsplit(".", 1)[-1].lower()
    if _MANY.fullmatch(last) or (last == "is_available" and "dist" in name):
        return True
    if depth and not isinstance(node, ast.Call) and name:
        found_ones = {_several(code, v, depth - 1) if v is not None else None for v in code.values(node)}
        return found_ones.pop() if len(found_ones) == 1 else None
    return None


def _several_by_number(code: Code, left: ast.expr, op: ast.cmpop, right: ast.expr) -> bool | None:
    if isinstance(op, ast.In | ast.NotIn) and code.name(right) == "os.environ":
        variable = str(code.constant(left))
        return isinstance(op, ast.In) if variable in _VARIABLES or variable.endswith("WORLD_SIZE") else None
    if is_size(code, left):
        value = written_number(code, right)
        several_ones = {ast.Gt: "1", ast.GtE: "2", ast.NotEq: "1"}
        one = {ast.LtE: "1", ast.Lt: "2", ast.Eq: "1"}
        return True if several_ones.get(type(op)) == value else False if one.get(type(op)) == value else None
    if not rank(code, left):
        return None
    if isinstance(op, ast.Is | ast.IsNot):
        return isinstance(op, ast.IsNot) if isinstance(right, ast.Constant) and right.value is None else None
    value = written_number(code, right)
    ranked = {ast.NotEq: "-1", ast.Gt: "-1", ast.GtE: "0"}
    unranked = {ast.Eq: "-1", ast.LtE: "-1", ast.Lt: "0"}
    return True if ranked.get(type(op)) == value else False if unranked.get(type(op)) == value else None


def is_size(code: Code, node: ast.expr, depth: int = 2) -> bool:
    """True if an expression is the number of processes."""
    if isinstance(node, ast.Call):
        if code.name(node.func) == "int" and len(node.args) == 1:
            return is_size(code, node.args[0], depth)
        if code.name(node.func) in {"os.environ.get", "os.getenv"} and node.args:
            return str(code.constant(node.args[0])).endswith("WORLD_SIZE")
        node = node.func
    elif isinstance(node, ast.Subscript) and code.name(node.value) == "os.environ":
        return str(code.constant(node.slice)).endswith("WORLD_SIZE")
    last = node.attr if isinstance(node, ast.Attribute) else dotted_name(node)
    if last and _SIZE.fullmatch(last.lower()):
        return True
    values = code.values(node) if depth and last else []
    return bool(values) and all(v is not None and v is not node and is_size(code, v, depth - 1) for v in values)


def written_number(code: Code, node: ast.expr) -> str:
    """Return a number as written, through a simple assignment; empty for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return f"-{node.operand.value!r}"
    value = code.constant(node)
    return str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
