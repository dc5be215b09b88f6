"""The way back from an expression to where the program made its value.

It goes from a name to its assignment, from a parameter to the caller's argument, from an attribute to `self.x =`, a
field or an option, from a call of an own function to what that returned, from a loop to what it goes through, and from
a batch to the data set. It reads the program only; values are added where a frame still has them.
"""

from __future__ import annotations

import ast
import dataclasses
import time
from collections.abc import Sequence
from typing import Any

from dtdebug.account import evaluate, scopes
from dtdebug.account.caught import caught_at
from dtdebug.account.chosen import choosing_tests, is_optimizer
from dtdebug.account.configs import entry_of, keys_of
from dtdebug.account.data_sets import empty_part, loading_call, sampling_method
from dtdebug.account.decided_links import COMPUTED, DECIDED, LAUNCH, MADE, DecidedLinks
from dtdebug.account.entering import Branches, branches_without_else, enter, none_around
from dtdebug.account.expressions import computes, is_literal, literal_text
from dtdebug.account.files import writer_of
from dtdebug.account.idle_loops import IdleLoop, held_by, idle_loop, loader_of, rounds_around
from dtdebug.account.last_bindings import Making, is_current
from dtdebug.account.makers import SCALARS, makings
from dtdebug.account.objects import MISSING, is_exactly, item
from dtdebug.account.off_stack import OffStack
from dtdebug.account.parts import leaves, operands_of
from dtdebug.account.per_rank import asks_rank, differs_by_itself, is_by_rank, is_rank
from dtdebug.account.places import place
from dtdebug.account.scopes import Scope
from dtdebug.account.sources import Sources
from dtdebug.account.values import masked, named, one_line
from dtdebug_taxonomy.model.account import MAX_LINKS, How, Link, NamedValue, Place
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS

_DEEPEST = 12
_SPARED = 4
"""Number of links that one part leaves to each of the next."""
_NOT_FOLLOWED = frozenset({"self", "cls", "__file__", "__name__", "super"})
_EMPTY = ("empty", "empty_like", "new_empty")
_ENDS: tuple[How, ...] = ("literal", "option", "default", "environment", "file")
"""Kinds of links at which a value is decided."""
_NOTHING = frozenset({"None", "0", "0.0", "[]", "{}", "()", "''"})
_ROUNDS = frozenset({"int", "round", "ceil", "floor"})


class WayBack(DecidedLinks):
    """Links found so far; `at`: file and line of the call that failed, `message`: text of the exception."""

    def __init__(self, sources: Sources, deadline: Deadline, message: str = "", at: tuple[str, int] = ("", 0)) -> None:
        super().__init__(message)
        self.stopped = ""
        self.at = at
        self._sources = sources
        self._deadline = deadline
        self._seen: set[tuple[object, ...]] = set()

    def follow(self, node: ast.expr, scope: Scope) -> None:
        """Follow each part of an expression back."""
        for leaf in leaves(node, scope):
            self._follow(leaf, scope, -1)

    def follow_each(self, nodes: Sequence[tuple[ast.expr, Scope]]) -> None:
        """Follow several expressions back, none so far that nothing is left for the next."""
        for number, (node, scope) in enumerate(nodes):
            self._most = MAX_LINKS - min(_SPARED * (len(nodes) - number - 1), MAX_LINKS // 3)
            if not (_is_nothing(scope.value(node)) and self.idle(node, scope)):
                self.follow(node, scope)
        self._most = MAX_LINKS

    def follow_loop(self, node: ast.expr, scope: Scope) -> None:
        """Follow what a loop goes through back, and the samples of its data set."""
        self._samples((node,), scope, -1)
        loading = loading_call(node, scope, self._sources)
        if loading is not None:
            call, home, joins = loading
            self._add(Link(value=NamedValue("DataLoader"), how="called", place=place(home, call)), -1)
            if joins is not None:
                self._add(Link(value=NamedValue("collate_fn"), how="passed", place=place(home, joins)), -1)
        self.follow(node, scope)

    def follow_rounds(self, call: ast.Call, scope: Scope) -> None:
        """Follow the number of rounds of the loop in which `next` had nothing left, and what there was."""
        around = rounds_around(call, scope)
        if around is None:
            if (held := held_by(call, scope, self._sources)) is not None and not held[1]:
                self._add_idle(IdleLoop(call.args[0], scope, held[0]))
            return
        loop, rounds = around
        shown = named(ast.unparse(loop.iter), rounds)
        at = self._add(Link(value=shown, how="loop", place=place(scope, loop.iter)), -1, plain=True)
        for leaf in leaves(loop.iter, scope):
            self._follow(leaf, dataclasses.replace(scope, line=loop.lineno), at)
        if (held := held_by(call, scope, self._sources)) is not None:
            size = NamedValue(f"len({one_line(ast.unparse(held[0]))})", str(held[1]))
            self._add(Link(value=size, how="called", place=place(scope, call)), -1, plain=True, scalar=True)

    def is_spoken_of(self, node: ast.expr) -> bool:
        """True if the message holds a literal."""
        return ast.unparse(node) in self._spoken

    def add_literal(self, name: str, node: ast.expr, scope: Scope) -> None:
        """Add an argument that stands as a literal in the call itself."""
        link = Link(value=masked(name, ast.unparse(node)), how="literal", place=place(scope, node))
        self._add(link, -1, scalar=True, sure=DECIDED)

    def add_off_stack(self, found: OffStack) -> None:
        """Add a line that no frame leads to, and the way back of the test on it."""
        node, scope = found.node, found.scope
        value = scope.value(node) if isinstance(node, ast.expr) else MISSING
        shown = named(found.name, value if is_exactly(value, SCALARS) else MISSING)
        sure = DECIDED if found.how == "literal" else COMPUTED
        at = self._add(Link(value=shown, how=found.how, place=place(scope, node)), -1, sure=sure)
        for leaf in leaves(found.asked, scope) if found.asked is not None else ():
            self._follow(leaf, scope, at)

    def _follow(self, node: ast.expr, scope: Scope, parent: int, position: int | None = None) -> None:
        text = ast.unparse(node)
        if text in _NOT_FOLLOWED:
            return
        if self._depth(parent) >= _DEEPEST or len(self.links) >= self._most:
            self._own += [parent] * (parent >= 0 and is_rank(node))
            self.stopped = self.stopped or "the way back is longer than what is kept"
            return
        if self._deadline.is_over:
            self.stopped = "the time for it was used up"
            return
        value = scope.value(node)
        if isinstance(node, ast.Call):
            if self._is_new(text, node, position):
                self._call(node, scope, parent, value, position)
            return
        if value is not MISSING and not scopes.is_plain_value(value):
            return
        if self._from_file(node, value, scope, parent):
            return
        found = False
        for made in makings(node, scope, self._sources):
            found = found or not isinstance(made.node, ast.AugAssign)  # that changes what was made elsewhere
            if self._is_new(text, made.node):
                self._add_making(node, value if is_current(node, made, scope) else MISSING, made, scope, parent)
        if not found and parent >= 0 and is_rank(node):
            self._own.append(parent)
        if not found and isinstance(node, ast.Attribute | ast.Subscript) and self._is_new(text, scope.node, scope.line):
            for leaf in leaves(node.value, scope):
                self._follow(leaf, scope, parent)

    def _from_file(self, node: ast.expr, value: Any, scope: Scope, parent: int) -> bool:
        """Add the line of a configuration file, where no line of the program decided a value."""
        keys = keys_of(node)
        if value is MISSING and isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            named_by = next(makings(node.value, scope, self._sources), None)  # another name of a part of the settings
            table = named_by.scope.value(named_by.value) if named_by is not None else MISSING
            value = item(table, node.slice.value) if is_exactly(table, (dict,)) else MISSING
        if not keys or not scope.user or not is_exactly(value, (int, float, str)):
            return False
        ends = next(makings(node, scope, self._sources), None)
        decided = ends is not None and (is_literal(ends.value) or ends.how in ("option", "environment"))
        if decided and (ends is None or scope.value(ends.value) == value or ends.how != "default"):
            return False
        asked = node.func if isinstance(node, ast.Call) else node
        owner = scope.value(asked.value) if isinstance(asked, ast.Attribute | ast.Subscript) else MISSING
        held = entry_of(keys, value, scope, owner)
        if held is None:
            return False
        at = Place(file=one_line(held.file), line=held.line, code=one_line(held.code))
        link = Link(value=named(ast.unparse(node), value), how="file", place=at, depth=self._depth(parent))
        self._add(link, parent, scalar=True, sure=DECIDED)
        return True

    def idle(self, node: ast.expr, scope: Scope) -> bool:
        """Add the loop that was to change a value, if it ran no round, and what leaves it empty."""
        idle = idle_loop(node, scope)
        if idle is not None:
            self._add_idle(idle)
        return idle is not None

    def _add_idle(self, idle: IdleLoop) -> None:
        size = NamedValue(f"len({one_line(ast.unparse(idle.over))})", "0")
        link = Link(value=size, how="loop", place=place(idle.scope, idle.at))
        at = self._add(link, -1, plain=True, scalar=True)
        loader = loader_of(idle, self._sources)
        if loader is not None:
            why, home, text = loader
            value = NamedValue(one_line(ast.unparse(idle.over)), text)
            self._add(Link(value=value, how="called", place=place(home, why), depth=1), at, sure=DECIDED)
            return
        for leaf in leaves(idle.over, idle.scope):
            self._follow(leaf, dataclasses.replace(idle.scope, line=idle.at.lineno), at)

    def _is_new(self, *key: object) -> bool:
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _add_making(self, node: ast.expr, value: Any, made: Making, scope: Scope, parent: int) -> None:
        if made.how in ("passed", "literal") and made.value is not None and made.scope.live:
            given = made.scope.value(made.value)
            scalars = is_exactly(value, SCALARS) and is_exactly(given, SCALARS)
            if scalars and type(value) is type(given) and value != given:
                return  # the value did not come from there
            value = value if given is MISSING else given
        shown = named(ast.unparse(node), value, contents=not _is_empty(made.value))
        if value is MISSING and (said := literal_text(made.how, made.node, made.value)):
            shown = masked(shown.name, said)
        if made.how == "tested":
            shown = named(ast.unparse(made.node), value=False)
        link = Link(value=shown, how=made.how, place=place(made.scope, made.node), depth=self._depth(parent))
        direct = (made.scope.file, made.line) == self.at and made.how == "passed"
        at = parent
        if made.scope.user and (scope.user or not direct):  # a library's parameter is its own matter
            asks = made.how == "environment" and asks_rank(made.value or node)
            plain = _hands_on(made.value) or _asks_launch(made.value) or asks
            reads = made.how == "file" and not self._deadline.is_over
            writer = writer_of(made, self._sources) if reads else None
            sure = (LAUNCH if asks else _sure(made)) if writer is None else None
            idle = self._is_of_no_use(value, shown.text, parent)
            caught = caught_at(shown.name, made, link.depth + 1) if idle else None
            sure = None if caught is not None else sure
            handed = ast.unparse(made.value) if isinstance(made.value, ast.Name | ast.Attribute) else ""
            at = self._add(link, parent, plain=plain, handed=handed, scalar=is_exactly(value, SCALARS), sure=sure)
            if at >= 0 and _is_sum(made.value) and self._is_number(at):
                self._sums.add(at)
            if at >= 0 and (asks or is_by_rank(made) or differs_by_itself(made.value)):
                self._own.append(at)
            self._follow_hidden(caught, writer, at)
            self._tests_of(node, value, made, scope, at)
        before = made.scope
        if made.scope.line > made.line or made.scope is scope:
            before = dataclasses.replace(made.scope, line=min(made.line, made.scope.line))
        if made.how == "loop":
            self._samples(made.parts, before, at, made.position)
        for part in made.parts:
            for leaf in leaves(part, before):
                self._follow(leaf, before, at, made.position if leaf is made.value else None)

    def _is_of_no_use(self, value: object, said: str, parent: int) -> bool:
        """True for None, and for a number or container to which nothing was added, here or where it is handed on."""
        if value is MISSING and said:
            return said in _NOTHING
        while value is MISSING and parent >= 0 and self._plain[parent] and not self.links[parent].value.text:
            parent = self._parents[parent]
        if value is MISSING and parent >= 0 and (self._plain[parent] or self.links[parent].how == "called"):
            return self.links[parent].value.text == "None"
        return value is None or _is_nothing(value)

    def _tests_of(self, node: ast.expr, value: Any, made: Making, scope: Scope, at: int) -> None:
        """Add the tests that explain what an object was made of, or why it is of this class."""
        if is_optimizer(value):
            self._add_choices(node, scope, at)
        if value is not MISSING and (part := empty_part(node, scope, self._sources)) is not None:
            self._follow(part, scope, at)
        if self._lacks and isinstance(made.value, ast.Call) and at >= 0 and not made.scope.live:
            self._branch_of(made, dotted_name(made.value.func).rpartition(".")[2], at)

    def _branch_of(self, made: Making, kind: str, parent: int) -> None:
        """Add the test of the branch that made an object, if its class shows that this branch was gone."""
        up = parent
        while up >= 0 and not self.links[up].value.text:
            up = self._parents[up]
        program = made.scope.program
        if up < 0 or kind not in self.links[up].value.text or program is None:
            return
        inner: ast.AST = made.node
        for around in program.code.ancestors(made.node) if made.node in program.code.parent else ():
            if isinstance(around, FUNCTIONS):
                return
            if isinstance(around, ast.If) and around.orelse:
                held = any(inner is each for each in around.body)
                shown = named(ast.unparse(around.test), value=held)
                link = Link(value=shown, how="tested", place=place(made.scope, around.test), depth=self._depth(parent))
                at = self._add(link, parent, sure=DECIDED)
                for leaf in leaves(around.test, made.scope):
                    self._follow(leaf, dataclasses.replace(made.scope, line=around.lineno), at)
                return
            inner = around

    def _add_choices(self, node: ast.expr, scope: Scope, parent: int) -> None:
        """Add the tests that chose the parameters of an optimizer."""
        for test, home in choosing_tests(node, scope, self._sources):
            value = home.value(test) if isinstance(test, ast.expr) else MISSING
            shown = named(ast.unparse(test), value if type(value) is bool else MISSING)
            self._add(Link(value=shown, how="tested", place=place(home, test), depth=self._depth(parent)), parent)

    def _follow_hidden(self, caught: Link | None, writer: Making | None, parent: int) -> None:
        """Go on with what was passed over, or with what the program wrote to a file that it reads."""
        if caught is not None:
            self._add(caught, parent, sure=DECIDED)
        if writer is None or writer.value is None:
            return
        link = Link(value=named(ast.unparse(writer.value), MISSING), how="file",
                    place=place(writer.scope, writer.node), depth=self._depth(parent))  # fmt: skip
        handed = isinstance(writer.value, ast.Name)
        at = self._add(link, parent, plain=handed, sure=None if handed else DECIDED)
        for leaf in leaves(writer.value, writer.scope):
            first = len(self.links)
            self._follow(leaf, writer.scope, at)
            if handed and first < len(self.links):
                self._ends.append((first, DECIDED))

    def _call(self, node: ast.Call, scope: Scope, parent: int, value: Any, position: int | None) -> None:
        """Go on with what a function of the program returns, or with a call that asks for the environment."""
        entered = enter(node, scope, self._sources)
        shown = named(ast.unparse(node), value)
        environment = dotted_name(node.func).endswith(evaluate.ENVIRONMENT)
        if entered is None and not environment and dotted_name(node.func).rpartition(".")[2] not in evaluate.WORLD:
            for leaf in operands_of(node, scope):
                self._follow(leaf, scope, parent)
            return
        if entered is None:
            own = is_rank(node)
            if parent >= 0 and self.links[parent].place.line == node.lineno and self.links[parent].how != "passed":
                self._ends.append((parent, DECIDED if environment else LAUNCH))  # the line is told already
                self._own += [parent] * own
                return
            how: How = "environment" if environment else "called"
            link = Link(value=shown, how=how, place=place(scope, node), depth=self._depth(parent))
            if scope.user:
                at = self._add(link, parent, plain=True, scalar=True, sure=DECIDED if environment else LAUNCH)
                self._own += [at] * (own and at >= 0)
            return
        if position is not None and parent >= 0:  # the part has the value of the name that it was given
            shown = NamedValue(shown.name, self.links[parent].value.text)
        self._return_links(entered, shown, value, parent, position)

    def _return_links(
        self, entered: Scope, shown: NamedValue, value: Any, parent: int, position: int | None = None
    ) -> None:
        if entered.node is None:
            return
        is_none = parent >= 0 and self.links[parent].value.text == "None"
        around = none_around(entered) if is_none else None
        if around is not None:  # the function itself was never entered
            node, test = around
            link = Link(value=shown, how="returned", place=place(entered, node), depth=self._depth(parent))
            at = self._add(link, parent, plain=True, scalar=True, sure=DECIDED)
            asked = [n for n in ast.walk(test) if isinstance(n, ast.expr)] if test is not None else []
            self._own += [at] * (at >= 0 and (test is None or any(map(is_rank, asked))))
            return
        if is_none and (last := scopes.last_without_return(entered.node)) is not None:
            link = Link(
                value=NamedValue(shown.name, "None"),
                how="returned",
                place=place(entered, last),
                depth=self._depth(parent),
            )
            self._add(link, parent, plain=True, scalar=True, sure=DECIDED)
            return
        if is_none and (branches := branches_without_else(entered.node)) is not None:
            self._add_branches(entered, branches, shown.name, parent)
            return
        for each in scopes.statements(entered.node):
            if not isinstance(each, ast.Return) or each.value is None:
                continue
            link = Link(value=shown, how="returned", place=place(entered, each), depth=self._depth(parent))
            inside = dataclasses.replace(entered, line=each.lineno)
            returned = each.value
            if isinstance(returned, ast.Tuple) and position is not None and position < len(returned.elts):
                returned = returned.elts[position]
            parts = leaves(returned, inside)
            sure = None if parts else DECIDED if is_literal(returned) else MADE
            sure = DECIDED if computes(returned) else sure
            at = self._add(
                link, parent, plain=isinstance(returned, ast.Name), scalar=is_exactly(value, SCALARS), sure=sure
            )
            if at >= 0 and differs_by_itself(returned):
                self._own.append(at)
            for leaf in parts:
                self._follow(leaf, inside, at)

    def _add_branches(self, entered: Scope, branches: Branches, name: str, parent: int) -> None:
        """Add the tests of a function that returns in each branch, and has none for the value that it was given."""
        depth = self._depth(parent)
        end = Link(
            value=NamedValue(name, "None"), how="returned", place=place(entered, branches.tests[-1]), depth=depth
        )
        at = self._add(end, parent, plain=True, scalar=True, sure=COMPUTED)
        for test in branches.tests:
            tested = Link(
                value=named(ast.unparse(test), value=False), how="tested", place=place(entered, test), depth=depth + 1
            )
            self._add(tested, at)
        self._follow(branches.subject, dataclasses.replace(entered, line=branches.tests[0].lineno), at)

    def _samples(self, parts: Sequence[ast.expr], scope: Scope, parent: int, position: int | None = None) -> None:
        """Go from a batch to the samples of the data set: the loader runs that in a library, or in another process."""
        for each in parts:
            for leaf in (each, *leaves(each, scope)):
                found = sampling_method(leaf, scope, self._sources)
                if found is not None:
                    part = "" if position is None else f"[{position}]"
                    self._return_links(found, NamedValue(f"sample{part} of the data set"), MISSING, parent, position)
                    return


class Deadline:
    """Time that the way back may take, in seconds of this thread: other ranks share the machine."""

    def __init__(self, seconds: float) -> None:
        self._end = time.thread_time() + seconds
        self._last = time.monotonic() + _PATIENCE * seconds

    @property
    def is_over(self) -> bool:
        """True if the time is used up."""
        return time.thread_time() > self._end or time.monotonic() > self._last


_PATIENCE = 20
"""Factor by which the clock on the wall may exceed the thread's time."""


def _is_nothing(value: object) -> bool:
    """True for a number or container as it is before anything was added to it."""
    return (is_exactly(value, (int, float)) and value == 0) or (is_exactly(value, (list, dict, set)) and not value)


def _is_sum(node: ast.expr | None) -> bool:
    """True for arithmetic, rounded or not."""
    match node:
        case ast.Call(args=[inner]) if dotted_name(node.func).rpartition(".")[2] in _ROUNDS:
            return isinstance(inner, ast.BinOp)
    return isinstance(node, ast.BinOp)


def _hands_on(node: ast.expr | None) -> bool:
    """True for an expression that only hands on a value, or an item of a fixed name."""
    return isinstance(node, ast.Name | ast.Attribute) or (
        isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
    )


def _asks_launch(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Call) and dotted_name(node.func).rpartition(".")[2] in evaluate.WORLD


def _sure(made: Making) -> int | None:
    if made.how in _ENDS or (made.value is not None and (is_literal(made.value) or computes(made.value))):
        return DECIDED
    if made.value is None and made.how not in ("loop", "passed") and any(map(computes, made.parts)):
        return COMPUTED
    if made.how in ("passed", "loop") or any(leaves(part, made.scope) for part in made.parts):
        return None
    return MADE


def _is_empty(node: ast.expr | None) -> bool:
    """True if an expression makes a tensor whose contents mean nothing."""
    return isinstance(node, ast.Call) and dotted_name(node.func).rpartition(".")[2] in _EMPTY
