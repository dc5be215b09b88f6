"""The commands and their parser; a module adds each command, and is imported only for it."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any, NoReturn

from dtdebug.errors import USAGE

MODULES = {
    "diagnose": "dtdebug.cli.diagnose",
    "triage": "dtdebug.cli.triage",
    "check": "dtdebug.cli.check",
    "fix": "dtdebug.cli.fix",
    "lab": "dtdebug.cli.lab",
    "learn": "dtdebug.cli.learn",
    "isolate": "dtdebug.cli.isolate",
    "doctor": "dtdebug.cli.doctor",
    "attach": "dtdebug.cli.attach",
    "join": "dtdebug.cli.join",
    "run": "dtdebug.cli.ranks",
    "flight": "dtdebug.cli.ranks",
    "slow": "dtdebug.cli.ranks",
    "diff": "dtdebug.cli.collectives",
    "replay": "dtdebug.cli.collectives",
    "rehearse": "dtdebug.cli.collectives",
    **dict.fromkeys(("wizard", "explain", "report", "why", "lsp", "mcp"), "dtdebug.cli.main"),
    "help": "dtdebug.cli.help",
    "completion": "dtdebug.cli.help",
}
"""Command -> module that adds it."""
DOCTOR = "answer questions from what `dtdebug doctor` measured in the last hour"
"""Help on the option `--doctor`."""
ALIASES = {"bisect": "isolate", "compare": "diff"}
"""Name of a command that is shown -> its older name."""
VERBS = frozenset((*MODULES, *ALIASES))


class _Parser(argparse.ArgumentParser):
    """Parser that reports errors in one line, without terminal escapes."""

    takes_command = False
    """True if what follows `--` is a command, and no further arguments."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Reject unknown arguments here: argparse reports those of a sub-command with the top-level help."""
        command = []
        if self.takes_command and "--" in args:
            args, command = args[: args.index("--")], args[args.index("--") + 1 :]
        parsed, unknown = super().parse_known_args(args, namespace)
        if self.takes_command:
            parsed.command = command
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        from dtdebug.privacy.sanitize import clean

        self.exit(USAGE, f"{self.prog}: error: {clean(message)}; `{self.prog} --help` shows the usage\n")


def parser(only: str = "") -> argparse.ArgumentParser:
    """Return the parser of the command line; if `only` is a command, others may be left out."""
    top = _Parser(prog="dtdebug", description="Why did my distributed training fail?", add_help=False)
    top.add_argument("--debug", action="store_true", help="show tracebacks of dtdebug's own failures")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    name = ALIASES.get(only, only)
    for module in [MODULES[name]] if name in MODULES else dict.fromkeys(MODULES.values()):
        import_module(module).add(commands)
    for alias, old in ALIASES.items():
        if old in commands.choices:
            commands.choices[alias] = commands.choices[old]
            if only == alias:
                commands.choices[alias].prog = f"dtdebug {alias}"
    return top
