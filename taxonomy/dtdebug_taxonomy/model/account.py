"""The account of a failure: what was refused, and where the program made the value that was refused.

It is read where an exception ends a rank (with values), or from a printed traceback and the files on disk (without).
"""

from __future__ import annotations

from typing import Literal

import msgspec

How = Literal[
    "assigned", "passed", "default", "option", "attribute", "returned", "loop", "environment", "file", "literal",
    "called", "tested", "written", "may_write", "caught", "destroyed",
]  # fmt: skip
"""Origin of a value: by an assignment, as an argument of the caller, as the default of a parameter, as an
option of the command line or a configuration, as an attribute of an object, by a function's return, from a loop, from
the environment, from a file, as a literal, by a call into a library, or by a test that chose what it was
made of. `written`, `may_write`: a line that writes the file that is missing, or may have written it. `caught`: lines
whose exception the program passes over, so that the value is not what they were to make of it. `destroyed`: the call
that ended the process group."""


class NamedValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """An expression of the program, and the value it had as a short text."""

    name: str
    """The expression as written: `pieces`, `len(loader)`, `args.shards`."""
    text: str = ""
    """The value: `list of 4 x Tensor[49] int64`; empty if it is not known."""


class Place(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A place in the user's program."""

    file: str
    line: int
    function: str = ""
    code: str = ""
    """The source line, stripped."""
    mark: tuple[int, int] = (0, 0)
    """First and last column of the expression within `code`, from 0, the last one excluded; (0, 0) if unknown."""


class Link(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One link of the way back from a value to where it was made."""

    value: NamedValue
    how: How
    place: Place
    depth: int = 0
    """Number of links between it and the refused argument."""


class Refusal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Refusal of the innermost call, by the source of the library or by its arguments."""

    api: str = ""
    """Qualified name of the library function that the user's line called: `torch.distributed.reduce_scatter`."""
    place: Place | None = None
    """Place at which the library raised."""
    tests: tuple[tuple[str, bool], ...] = ()
    """Tests over the raising line, innermost first, and the way each went: (`len(outputs) != world_size`, True)."""
    values: tuple[NamedValue, ...] = ()
    """Operands of the tests; where compiled code raised, the arguments of the last Python call."""
    arguments: tuple[NamedValue, ...] = ()
    """Arguments of `api` by the names of its parameters, with the values they had."""
    parameters: tuple[str, ...] = ()
    """Parameters of what the user's line calls, in their order."""


class Outdated(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An object of a class that a later cell of the notebook has defined again."""

    value: NamedValue
    kind: str
    """Name of the class."""
    defined: Place
    """Place where the class was defined again."""
    made: Place | None = None
    """Line at the margin of a cell that made the object before; None if it is not known."""
    has: tuple[str, ...] = ()
    """Names that an object of the newer class has: what its methods set, and what only the newer class defines."""


class Account(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The account of one rank's exception."""

    rank: int | None = None
    exception: str = ""
    """Class and first line of the message."""
    place: Place | None = None
    """The user's line that raised, or that called what raised."""
    refusal: Refusal | None = None
    links: tuple[Link, ...] = ()
    """The way back, the refused argument first; the links of one value follow each other."""
    root: int = -1
    """Index of the link at which the value was decided; -1 if the way back does not end in the user's program."""
    by_rank: int = -1
    """Index of the link at which what each rank has of its own comes in: its number, chance, the clock; -1 if none."""
    beside: tuple[Link, ...] = ()
    """Names that could stand at the line instead: of the function, bound above it, and of the parts of an
    object that have the attribute which it lacks."""
    outdated: tuple[Outdated, ...] = ()
    """An object at the line, or whose method is on the stack, that keeps the code of an older class."""
    facts: tuple[NamedValue, ...] = ()
    """Further facts of the rank: world size, rank, backend, device."""
    with_values: bool = True
    """False if it was read from a printed traceback and the files on disk."""
    modules: tuple[str, str] = ("", "")
    """Names that the file of `place` has for torch and torch.distributed; empty if it does not import them."""
    stopped: str = ""
    """Why the way back goes no further, in words; empty if it ends in a literal, option, variable or file."""


class Condition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A test, or one part of it, with its outcome and the operands."""

    text: str
    result: bool | None = None
    """None if it can't be known from the values that are left."""
    values: tuple[NamedValue, ...] = ()
    fixed: bool = False
    """True if no pass of a loop around it changes its operands."""


class Branch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A test or a loop of a function that a rank is in, or was in, as the values at its stop decide it."""

    place: Place
    kind: Literal["if", "while", "for", "try"] = "if"
    conditions: tuple[Condition, ...] = ()
    """The whole test, then its parts; for a loop what it goes through."""
    passes: int | None = None
    """Number of passes of a `for` loop."""
    held: tuple[tuple[int, int], ...] = ()
    """Ranges of lines where a rank can only be if the test holds; of a loop, its body."""
    failed: tuple[tuple[int, int], ...] = ()
    """Ranges of lines where a rank can only be if it does not hold; of a loop, what follows it."""
    leaves: str = ""
    """Statement with which the body leaves its loop or function: `break`, `continue`, `return`, `raise`."""
    turn: tuple[NamedValue, ...] = ()
    """Variables of the loops around it, as they were when it was reached last; a text is empty if that is not known."""
    links: tuple[Link, ...] = ()
    """Way back of the operands."""
    modules: tuple[str, str] = ("", "")
    """Names that the file has for torch and torch.distributed; empty if it does not import them."""


class Side(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Ranks that a test sends one way."""

    ranks: tuple[int, ...]
    result: bool | int | None = None
    """Outcome of the condition, or number of passes; None if these ranks have left the function."""
    values: tuple[NamedValue, ...] = ()


class Parting(msgspec.Struct, frozen=True, kw_only=True):
    """The test or loop at which ranks of a hang parted."""

    branch: Branch
    """As the rank has it that the others wait for."""
    text: str
    """The part of the test that differs."""
    sides: tuple[Side, ...]
    """Ranks that the others wait for first."""
    sure: bool = True
    """False if the sides may be in different passes of a loop, or one side was not seen at the test."""
    detour: bool = False
    """True if both ways lead to the call that is waited for, and the rank has not come back from one of them."""
    polls: Branch | None = None
    """Loop in which such a rank waits for a file; its links are the lines that write one of that name."""


MAX_BRANCHES = 32
"""Maximum number of tests and loops kept of a rank."""
MAX_LINKS = 24
"""Maximum number of links kept."""
MAX_PARAMETERS = 64
"""Maximum number of parameters of a call kept."""
MAX_BESIDE = 16
"""Maximum number of other names kept."""
MAX_TEXT = 120
"""Maximum number of characters of a value or a source line."""
