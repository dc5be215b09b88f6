"""Options that a program takes: of its own parser, of one that other modules make or extend, of dataclasses."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from dtdebug_taxonomy.checks.shared.passing import always_runs
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.project import FoundDefinition, Project
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS, Function

_ELSEWHERE = re.compile(
    r"parse_known_args|parse_intermixed|add_subparsers|REMAINDER|allow_abbrev|prefix_chars|"
    r"sys\.argv\s*(\+?=(?!=)|\.(remove|pop|insert|append|extend|clear)\b|\[[^\]\n]{0,20}\]\s*\+?=(?!=))|del sys\.argv"
)
"""Constructs by which a parser gets options that these files don't show, or splits them in its own way."""
_ADDED = {"deepspeed.add_config_arguments": ("--deepspeed", "--deepspeed_config", "--deepscale", "--deepscale_config")}
"""Calls that add known options to the parser passed to them."""
_MAKER = "argparse.ArgumentParser"
_BY_CLASSES = ("transformers.HfArgumentParser", "transformers.hf_argparser.HfArgumentParser")
_NAMED = re.compile(r"pars|arg|opt|conf|flag|cli", re.IGNORECASE)
"""Names of functions of other modules that make a parser."""
_FILES = 4
"""Maximum number of files that share a parser, and depth of inherited dataclasses."""
_GROUPS = {"add_argument_group", "add_mutually_exclusive_group"}
_ENDS = "'unrecognized arguments'"
_ENDS_BY_CLASSES = "'Some specified arguments are not used by the HfArgumentParser'"


class Options(NamedTuple):
    """Options of a program's only parser."""

    calls: dict[str, ast.Call]
    """Spelling -> call that adds the option, or that adds a library's options."""
    names: list[str]
    """Spellings in sorted order."""
    homes: dict[ast.Call, Code]
    """Call -> file that contains it."""
    made_in: str = ""
    """Name of the other module that makes the parser."""
    ends: str = _ENDS
    """Error message of a program that is given an unknown option."""

    def knows(self, name: str) -> bool:
        """True if argparse takes a spelling, in full or as an abbreviation."""
        at = bisect_left(self.names, name)
        return at < len(self.names) and self.names[at].startswith(name)

    def default(self, attribute: str) -> object:
        """Return the value of `args.attribute` if the option is not given; None if unknown."""
        call = self.call(attribute)
        if call is None or any(k.arg in {"action", "required", "nargs"} for k in call.keywords):
            return None
        code = self.homes[call]
        return code.constant(code.argument(call, "default"))

    def call(self, attribute: str) -> ast.Call | None:
        """Return the call that adds the option of an attribute."""
        for call in dict.fromkeys(self.calls.values()):
            code = self.homes[call]
            dest = code.constant(code.argument(call, "dest"))
            names = [str(a.value) for a in call.args if isinstance(a, ast.Constant)]
            long = next((n for n in names if n.startswith("--")), "")
            if (dest or long.lstrip("-").replace("-", "_")) == attribute:
                return call
        return None


def options(code: Code) -> Options | None:
    """Return all options of a program, cached with it; None if it may have more than these."""
    if "_options" not in code.__dict__:
        find = partial(_options, code)
        code.__dict__["_options"] = code.project.noting(find) if code.project is not None else (find(), set())
    found, consulted = code.__dict__["_options"]
    if code.project is not None:
        code.project.consulted |= consulted
    return found  # type: ignore[no-any-return]


def _options(code: Code) -> Options | None:
    if _ELSEWHERE.search(code.text):
        return None
    made = code.calls(_MAKER)
    by_classes = code.calls(*_BY_CLASSES)
    child = _child(code, made)
    if len(made) - bool(child) + len(by_classes) > 1 or (child is None and _has_parents(code, made)):
        return None
    if by_classes:
        return _of_classes(code, by_classes[0])
    if not made:
        return _of_module(code)
    names = {n for c in made for n in _bound(code, c)} if all(_bound(code, c) for c in made) else set()
    parsed = any(not c.args and not c.keywords for c in code.methods("parse_args"))
    return _gather_options({code: names}, made[0], code) if names and parsed else None


def _has_parents(code: Code, made: list[ast.Call]) -> bool:
    return any(code.argument(c, "parents", 4) is not None for c in made)


def _child(code: Code, made: list[ast.Call]) -> ast.Call | None:
    """Return the one of two parsers whose only parent is the other, through the function that makes that one."""
    for child in made if len(made) == 2 else ():
        parents = code.argument(child, "parents")
        if isinstance(parents, ast.List) and len(parents.elts) == 1 and isinstance(parents.elts[0], ast.Call):
            function = code.local_function(parents.elts[0])
            other = next(c for c in made if c is not child)
            if function is not None and code.function(other) is function and not _has_parents(code, [other]):
                return child
    return None


def _bound(code: Code, call: ast.Call) -> set[str]:
    """Return the variables that hold a parser; empty if it is also stored elsewhere."""
    kept = code.parent.get(call)
    if not isinstance(kept, ast.Assign) or not all(isinstance(t, ast.Name) for t in kept.targets):
        return set()
    return {dotted_name(t) for t in kept.targets}


def _of_module(code: Code) -> Options | None:
    """Return the options of a parser that another module's function makes, if the program definitely calls it."""
    found = _maker_elsewhere(code)
    if found is None or not always_runs(code, found[0]):
        return None
    call, (module, function) = found
    made = module.calls(_MAKER)
    names = _bound(module, made[0]) if len(made) == 1 and not _ELSEWHERE.search(module.text) else set()
    if (
        not names
        or _has_parents(module, made)
        or module.function(made[0]) not in {function, None}
        or not isinstance(function, FUNCTIONS)
    ):
        return None
    if _parses(module, function, names, code, call):
        return _made_in(module, _gather_options({module: names, code: set()}, made[0], module))
    returned = [r.value for r in module.inside(function, ast.Return) if module.function(r) is function]
    if not returned or not all(dotted_name(r) in names for r in returned):
        return None
    above = code.parent.get(call)
    asked = isinstance(above, ast.Attribute) and above.attr == "parse_args"
    mine = set() if asked else _bound(code, call)
    parsed = any(not c.args and not c.keywords and always_runs(code, c) for c in code.methods("parse_args"))
    if not parsed or not (asked or mine):
        return None
    return _made_in(module, _gather_options({module: names, code: mine}, made[0], module))


def _made_in(module: Code, found: Options | None) -> Options | None:
    return found._replace(made_in=module.path.rpartition("/")[2]) if found else None


def _parses(code: Code, function: Function, names: set[str], outer: Code, call: ast.Call) -> bool:
    """True if a function that is called like this lets its parser read the command line."""
    return any(
        dotted_name(c.func).rpartition(".")[0] in names
        and code.function(c) is function
        and not any(isinstance(a, ast.For | ast.While | ast.Try) for a in code.ancestors(c))
        and not c.keywords
        and (not (c.args or call.args or call.keywords) or (len(c.args) == 1 and _is_line(function, c, outer, call)))
        for c in code.methods("parse_args")
    )


def _is_line(function: Function, parse: ast.Call, outer: Code, call: ast.Call) -> bool:
    """True if the parsed argument is omitted or is `sys.argv[1:]`."""
    names = [a.arg for a in function.args.args]
    name = dotted_name(parse.args[0])
    if name not in names:
        return False
    given = outer.argument(call, name, names.index(name))
    if given is not None:
        return outer.source_of(given) == "sys.argv[1:]"
    left_out = names[::-1].index(name)
    defaults = function.args.defaults[::-1]
    default = defaults[left_out] if left_out < len(defaults) else call
    return isinstance(default, ast.Constant) and default.value is None and not outer.has_unpacking(call)


def _maker_elsewhere(code: Code) -> tuple[ast.Call, FoundDefinition] | None:
    """Return the only function of other modules that makes a parser and is called here, with the call."""
    project = code.project
    found: dict[ast.AST, tuple[ast.Call, FoundDefinition]] = {}
    for call in code.nodes(ast.Call) if project is not None else ():
        name = dotted_name(call.func)
        if project is None or name.partition(".")[0] not in code.imports or not project.may_hold(code, call.func):
            continue
        defined = project.resolve_call(code, call) if _NAMED.search(name.rpartition(".")[2]) else None
        if defined is not None and defined.code is not code and defined.code.calls(_MAKER):
            found.setdefault(defined.node, (call, defined))
    return next(iter(found.values())) if len(found) == 1 else None


def _gather_options(files: dict[Code, set[str]], made: ast.Call, home: Code) -> Options | None:
    """Return all options that these files and the receivers of the parser add; None if one is unreadable."""
    found: dict[str, ast.Call] = {"--help": made, "-h": made}
    homes = {made: home}
    todo = list(files.items())
    while todo:
        code, names = todo.pop()
        handed_on = _handed_on(code, names)
        if handed_on is None:
            return None
        for call, defined, name in handed_on:
            if defined is None:
                found |= dict.fromkeys(_ADDED[code.name(call.func)], call)
                homes[call] = code
                continue
            known = files.setdefault(defined.code, set())
            if name not in known:
                known.add(name)
                todo.append((defined.code, known))
        if len(files) > _FILES or (code is not home and _ELSEWHERE.search(code.text)):
            return None
    for code in files:
        for call in code.methods("add_argument"):
            spellings = [a.value if isinstance(a, ast.Constant) else None for a in call.args]
            if not spellings or not all(isinstance(s, str) for s in spellings) or code.has_unpacking(call):
                return None
            found |= {str(s): call for s in spellings if str(s).startswith("-")}
            if "BooleanOptional" in code.source_of(call):
                found |= {f"--no-{str(s)[2:]}": call for s in spellings if str(s).startswith("--")}
            homes[call] = code
    return Options(found, sorted(found), homes)


def _handed_on(code: Code, names: set[str]) -> list[tuple[ast.Call, FoundDefinition | None, str]] | None:
    """Return the calls that receive the parser: (call, function, parameter); None if one is unreadable."""
    known = _aliases(code, names)
    found: list[tuple[ast.Call, FoundDefinition | None, str]] = []
    for call in code.nodes(ast.Call) if known else ():
        given = [a for a in (*call.args, *(k.value for k in call.keywords)) if dotted_name(a) in known]
        if not given:
            continue
        if code.name(call.func) in _ADDED:
            found.append((call, None, ""))
            continue
        defined = code.project.resolve_call(code, call) if code.project is not None else None
        if defined is None or not isinstance(defined.node, FUNCTIONS) or not defined.code.is_plain(defined.node):
            return None
        places = dict(_parameters(defined, call))
        if any(id(g) not in places for g in given):
            return None
        found += [(call, defined, places[id(g)]) for g in given]
    return found


def _parameters(defined: FoundDefinition, call: ast.Call) -> Iterator[tuple[int, str]]:
    """Yield (id of an argument's expression, parameter) for a call."""
    a = defined.node.args  # type: ignore[union-attr]
    positions = [x.arg for x in (*a.posonlyargs, *a.args)]
    if isinstance(defined.code.parent.get(defined.node), ast.ClassDef) and positions[:1] in (["self"], ["cls"]):
        positions = positions[1:]
    if not any(isinstance(x, ast.Starred) for x in call.args):
        yield from ((id(x), name) for x, name in zip(call.args, positions, strict=False))
    yield from ((id(k.value), k.arg) for k in call.keywords if k.arg)


def _aliases(code: Code, names: set[str]) -> set[str]:
    """Return all names of a parser and of its groups in a file."""
    known = set(names)
    for assign in code.nodes(ast.Assign) if names else ():
        value = assign.value
        if isinstance(value, ast.Call):
            grouped = isinstance(value.func, ast.Attribute) and value.func.attr in _GROUPS
            is_it = grouped or any(dotted_name(a) in known for a in value.args)
        else:
            is_it = dotted_name(value) in known
        if is_it:
            known |= {dotted_name(t) for t in assign.targets} - {""}
    return known


def _of_classes(code: Code, call: ast.Call) -> Options | None:
    """Return the options of a Transformers parser by the fields of its dataclasses; None if one is unreadable."""
    given = code.argument(call, "dataclass_types", 0)
    parsed = any(not c.args and not c.keywords for c in code.methods("parse_args_into_dataclasses"))
    if not parsed or code.project is None or given is None or len(call.args) + len(call.keywords) > 1:
        return None
    found = {"--help", "-h"}
    for each in given.elts if isinstance(given, ast.Tuple | ast.List) else [given]:
        fields = _fields(code.project, code, each, _FILES)
        if fields is None:
            return None
        for field in fields:
            spellings = (f"--{field}", f"--no_{field}")
            found |= {*spellings, *(s.replace("_", "-") for s in spellings)}
    added = _gather_options({code: _bound(code, call)}, call, code) if _bound(code, call) else None
    if added is None:
        return None
    calls = dict.fromkeys(found, call) | added.calls
    return Options(calls, sorted(calls), added.homes, ends=_ENDS_BY_CLASSES)


def _fields(project: Project, code: Code, node: ast.expr, left: int) -> set[str] | None:
    """Return the fields of a dataclass and of its bases; None if one is not part of the project."""
    name = code.name(node)
    defined = project.find_definition(code, name) if left and name else None
    if defined is None or not isinstance(defined.node, ast.ClassDef):
        return None
    home, cls = defined.code, defined.node
    if not any("dataclass" in home.source_of(d) for d in cls.decorator_list) or "aliases" in home.source_of(cls):
        return None
    found: set[str] = set()
    for base in cls.bases:
        above = _fields(project, home, base, left - 1)
        if above is None:
            return None
        found |= above
    return found | {s.target.id for s in cls.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)}
