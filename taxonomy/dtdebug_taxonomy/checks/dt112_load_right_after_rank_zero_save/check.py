"""Files that all ranks load right after rank 0 starts to save them."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.course import Step, Thing, courses, may_refer_to
from dtdebug_taxonomy.checks.shared.handing_over import (
    MEETS,
    read_by_others,
    same_file,
    wait_after,
    written_by_first,
)
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import Guard, guards
from dtdebug_taxonomy.source.python.names import dotted_name

_PREPARES_INPUTS = re.compile(r"(?i)tokenizer|processor|feature_extractor")
_SAVES = {
    "torch.save": ("f", 1),
    "safetensors.torch.save_file": ("filename", 1),
    "numpy.save": ("file", 0),
    "numpy.savez": ("file", 0),
    "joblib.dump": ("filename", 1),
}
_LOADS = {
    "torch.load": ("f", 0),
    "safetensors.torch.load_file": ("filename", 0),
    "safetensors.safe_open": ("filename", 0),
    "numpy.load": ("file", 0),
    "joblib.load": ("filename", 0),
    "pandas.read_csv": ("filepath_or_buffer", 0),
    "pandas.read_parquet": ("path", 0),
    "pandas.read_pickle": ("filepath_or_buffer", 0),
}
_SAVE_METHODS = {
    "save_pretrained": ("save_directory", 0),
    "save_weights": ("filepath", 0),
    "to_csv": ("path_or_buf", 0),
    "to_parquet": ("path", 0),
    "to_pickle": ("path", 0),
}
_LOAD_METHODS = {"from_pretrained": ("pretrained_model_name_or_path", 0), "load_weights": ("filepath", 0)}


def check(code: Code) -> Iterator[Hit]:
    """Report the call that loads."""
    seen: set[ast.AST] = set()
    opened = [*_open_calls(code)]
    saves = _with_path(code, _SAVES, _SAVE_METHODS) + [(call, path) for call, path, writes in opened if writes]
    saves.sort(key=lambda s: code.order[s[0]])
    by_file: dict[tuple[ast.AST | None, object], list[tuple[ast.Call, ast.expr]]] = defaultdict(list)
    for save, target in saves:
        for key in _keys(code, save, target):
            by_file[key].append((save, target))
    loads = _with_path(code, _LOADS, _LOAD_METHODS) if saves else []
    for load, path in (*loads, *((call, path) for call, path, writes in opened if saves and not writes)):
        for key in _keys(code, load, path):
            before = bisect_left(by_file[key], code.order[load], key=lambda s: code.order[s[0]])
            if before and (hit := _hit(code, load, path, *by_file[key][before - 1])) is not None:
                seen.add(load)
                yield hit
                break
    if code.role != "test":
        yield from _across_functions(code, seen)


def _open_calls(code: Code) -> Iterator[tuple[ast.Call, ast.expr, bool]]:
    """Yield the calls of `open`: (call, path, whether it creates the file)."""
    for call in code.calls("open"):
        path, given = code.argument(call, "file", 0), code.argument(call, "mode", 1)
        mode = "r" if given is None else code.constant(given)
        if path is not None and isinstance(mode, str) and "+" not in mode and "a" not in mode:
            yield call, path, not mode.startswith("r")


def _keys(code: Code, call: ast.Call, path: ast.expr) -> Iterator[tuple[ast.AST | None, object]]:
    """Yield keys shared by calls of one function on the same file: the path's source and its constant value."""
    function = code.function(call)
    yield function, code.source_of(path)
    if isinstance(value := code.constant(path), str):
        yield function, (value,)


def _hit(code: Code, load: ast.Call, path: ast.expr, save: ast.Call, target: ast.expr) -> Hit | None:
    guard = written_by_first(code, save) if same_file(code, path, target) else None
    if guard is None or not read_by_others(code, load, save, guard):
        return None
    if any(g.test.value == "0" and g.test.equal for g in guards(code).around(load)):
        return None  # the process that saved, on each machine
    if _is_tokenizer(save) and not _is_tokenizer(load):
        return None  # other files of that directory
    line = code.text.place(code.span(save).start).line
    return Hit(
        code.span(load),
        f"Other ranks load here what rank 0 saves at line {line}, without waiting for it: "
        "the file is missing, from an earlier run, or half written.",
        wait_after(code, guard),
    )


def _is_tokenizer(call: ast.Call) -> bool:
    """True if a call saves or loads a tokenizer or a processor of inputs, by the name of its object."""
    return bool(_PREPARES_INPUTS.search(dotted_name(call.func).rpartition(".")[0]))


def _across_functions(code: Code, seen: set[ast.AST]) -> Iterator[Hit]:
    """Report loads of what a function writes that rank 0 alone calls."""
    for steps in courses(code) if _may_write_first(code) else ():
        writes = [(n, s, p) for n, s in enumerate(steps) if (p := _path_of(s, _SAVES)) is not None]
        for at, write, path in writes:
            guard = _guard_of(write, code)
            if guard is None:
                continue
            for read in steps[at + 1 :]:
                if _may_wait(read):
                    break
                node = read.seen_beside(write, code)
                if not isinstance(node, ast.Call) or node in seen or _path_of(read, _LOADS) is not path:
                    continue
                if read.excludes(write) or any(p.node is guard.node for p in read.places) or _guard_of(read, code):
                    continue
                seen.add(node)
                line = code.text.place(code.span(guard.node).start).line
                yield Hit(
                    code.span(node),
                    f"Other ranks load here what rank 0 saves at line {line}, without waiting for it: "
                    "the file is missing, from an earlier run, or half written.",
                    wait_after(code, guard),
                )


def _may_write_first(code: Code) -> bool:
    """True if rank 0 alone makes a call that saves, or may lead to one in this file or another."""
    seen: set[ast.AST] = set()
    return any(
        isinstance(call.func, ast.Name | ast.Attribute)
        and written_by_first(code, call) is not None
        and _may_save(code, call, seen)
        for call in code.nodes(ast.Call)
    )


def _may_save(code: Code, call: ast.Call, seen: set[ast.AST]) -> bool:
    """True if a call saves, or may lead to one that does: to a definition, or a method of that name in reach."""
    todo = [(code, call)]
    while todo:
        home, at = todo.pop()
        if home.name(at.func) in _SAVES:
            return True
        for found in may_refer_to(home, at):
            if found.node not in seen:
                seen.add(found.node)
                todo += [(found.code, c) for c in found.code.inside(found.node, ast.Call)]
    return False


def _path_of(step: Step, functions: dict[str, tuple[str, int]]) -> Thing | None:
    """Return the path that a step writes or reads, as one object; None if it is none of these functions."""
    if step.name not in functions or not isinstance(step.node, ast.Call):
        return None
    keyword, place = functions[step.name]
    names = [None] * len(step.node.args) + [k.arg for k in step.node.keywords]
    return next((t for n, (k, t) in enumerate(zip(names, step.given, strict=True)) if k == keyword or n == place), None)


def _guard_of(step: Step, code: Code) -> Guard | None:
    """Return the condition under which rank 0 alone comes to a step, among those of this file."""
    nodes = [c.node for c in step.calls if c.code is code] + ([step.node] if step.code is code else [])
    found = (written_by_first(code, n) for n in nodes if isinstance(n, ast.Call))
    return next((g for g in found if g is not None), None)


def _may_wait(step: Step) -> bool:
    """True if the ranks may wait for each other in a step."""
    return isinstance(step.node, ast.Call) and bool(MEETS.search(step.name.rpartition(".")[2] or step.attribute))


def _with_path(
    code: Code, functions: dict[str, tuple[str, int]], methods: dict[str, tuple[str, int]]
) -> list[tuple[ast.Call, ast.expr]]:
    found = [(c, code.argument(c, *functions[code.name(c.func)])) for c in code.calls(*functions)]
    found += [(c, code.argument(c, *methods[getattr(c.func, "attr", "")])) for c in code.methods(*methods)]
    if "from_pretrained" in methods:
        found += [(c, code.argument(c, "model_id", 1)) for c in code.calls("peft.PeftModel.from_pretrained")]
    return [(call, path) for call, given in found if given is not None for path in _possible(code, given)]


def _possible(code: Code, path: ast.expr) -> list[ast.expr]:
    """Return a path and, if a condition chooses it, its alternatives: `a if lora else b`."""
    chosen = [v for v in code.values(path) if isinstance(v, ast.IfExp)] if dotted_name(path) else []
    return [path, *(branch for value in chosen for branch in (value.body, value.orelse))]
