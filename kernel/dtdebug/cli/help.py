"""The help on all commands, what a mistyped word may have meant, and completion for shells."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from dtdebug.errors import NOTHING, UsageError

HINTS = """usage: dtdebug [THING ...]          a log, folder, pid, dump, program, or "what you see"
       dtdebug -- COMMAND ...       run a job and say what went wrong

It failed       dtdebug train.log          dtdebug logs/         dtdebug "loss is NaN on rank 3"
It hangs now    dtdebug attach             finds your job and asks every rank
Start it        dtdebug run -- torchrun --nproc-per-node 8 train.py
Before it runs  dtdebug check .            dtdebug doctor -- torchrun train.py"""
"""Seven of the eight lines of plain `dtdebug` where nothing runs and nothing has failed; the last names --help."""
SHORT = f"""{HINTS}

Commands, each with --help:
  it runs or hangs
    run       run a job unchanged; say why it fails or hangs     dtdebug run -- torchrun train.py
    attach    ask every rank of a running job where it is        dtdebug attach
  it has failed
    diagnose  the same as dtdebug THING, with its options        dtdebug diagnose logs/ dumps/
    explain   what a name in an answer means                     dtdebug explain DT101
    report    a report to send or to paste into an issue         dtdebug report > report.md
  before it runs
    check     find mistakes in programs and launch scripts       dtdebug check .
    doctor    can the hosts of a job work together?              dtdebug doctor -- torchrun train.py
  at leisure
    learn     learn to debug distributed training, with labs     dtdebug learn

`dtdebug why` tells all that is known of the last failure; `dtdebug help advanced` lists more commands.
Status: 0 nothing found, 1 something found, 2 wrong usage or unreadable input. -V: the version."""
ADVANCED = """More commands, each with --help:
  find the part that is responsible
    bisect      run a failing job again and again, each time with one thing changed    (also: isolate)
    run --record, then
    compare     where two recorded runs first differ: collective, tensor, rank, line   (also: diff)
    replay      run one recorded rank alone, with the recorded results of its collectives
    rehearse    do all ranks of a large job call the same collectives? on this machine
  parts of `dtdebug THING`
    triage      read all logs of a job; --follow while it writes, --part on each host, --against a healthy run
    flight      compare the dumps of PyTorch's flight recorder
    join        one answer from the reports of several hosts
    slow        which rank is late: torch.profiler's traces, NCCL Inspector
    why         all that is known of the last failure
    wizard      find the cause question by question
  programs
    fix         the findings of `check` as diffs
    lab         programs with a fault, to practise
  for editors, agents and shells
    lsp         the language server
    mcp         tools for coding agents, by the Model Context Protocol
    completion  completion for bash, zsh and fish"""
_MEANT = {
    "watch": "run --watch", "hang": "attach", "hangs": "attach", "stuck": "attach", "ps": "attach", "state": "attach",
    "ask": "wizard", "version": "-V", "profile": "slow", "lint": "check",
}  # fmt: skip
"""Other words for a command -> the command."""
_SHELLS = ("bash", "zsh", "fish")


def add(commands: Any) -> None:
    """Add the sub-commands to the command-line parser."""
    helps = commands.add_parser(
        "help",
        help="how to use a command",
        description="Prints how to use dtdebug or one of its commands; `advanced` lists those that --help leaves out.",
        epilog="Examples: `dtdebug help run`, `dtdebug help advanced`.",
    )
    helps.add_argument("verb", nargs="?", default="", metavar="COMMAND", help="a command, or advanced")
    helps.set_defaults(run=_help)
    completion = commands.add_parser(
        "completion",
        help="print the completion of this command for a shell",
        description="Prints a script that completes commands, options and files; your shell reads it at its start.",
        epilog="Examples: `dtdebug completion bash >> ~/.bashrc`, "
        "`dtdebug completion fish > ~/.config/fish/completions/dtdebug.fish`.",
    )
    completion.add_argument("shell", choices=_SHELLS)
    completion.set_defaults(run=_complete)


def _help(options: argparse.Namespace) -> int:
    from dtdebug.cli.verbs import VERBS, parser

    if not options.verb:
        print(SHORT)
    elif options.verb == "advanced":
        print(ADVANCED)
    elif options.verb in VERBS:
        print(_commands(parser(only=options.verb))[options.verb].format_help(), end="")
    else:
        raise UsageError(misspelt(options.verb) or f"help: no command {options.verb!r}; `dtdebug --help` lists them")
    return NOTHING


def misspelt(word: str) -> str:
    """Return the question whether a word was meant for a command; "" for what exists, and words like no command."""
    import os

    from dtdebug.cli.verbs import VERBS
    from dtdebug.presentation.terminal import near

    if os.path.lexists(word) or not word.isidentifier():
        return ""
    meant = word if word in VERBS else _MEANT.get(word) or near(word, VERBS)
    return f"{word}: no such command, file or folder; did you mean `dtdebug {meant}`?" if meant else ""


def _commands(top: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found = next(a for a in top._actions if isinstance(a, argparse._SubParsersAction))  # noqa: SLF001 - no other way
    return dict(found.choices)


def _complete(options: argparse.Namespace) -> int:
    from dtdebug.cli.verbs import parser

    words = {
        name: sorted(
            w
            for a in each._actions  # noqa: SLF001
            for w in (*a.option_strings, *(a.choices or ()))
        )
        for name, each in sorted(_commands(parser()).items())
    }
    sys.stdout.write(_fish(words) if options.shell == "fish" else _bash(words, zsh=options.shell == "zsh"))
    return NOTHING


def _bash(words: dict[str, list[str]], *, zsh: bool) -> str:
    """Return a function for bash, which zsh runs through its own adapter."""
    rows = "\n".join(f"    {name}) words='{' '.join(of)}' ;;" for name, of in words.items())
    adapter = "autoload -U +X bashcompinit && bashcompinit\n" if zsh else ""
    return f"""{adapter}_dtdebug() {{
  local words cur="${{COMP_WORDS[COMP_CWORD]}}"
  case "${{COMP_WORDS[1]}}" in
{rows}
    *) words= ;;
  esac
  [ "$COMP_CWORD" = 1 ] && words='{" ".join(words)}'
  COMPREPLY=($(compgen -W "$words" -- "$cur"; compgen -f -- "$cur"))
}}
complete -o filenames -F _dtdebug dtdebug
"""


def _fish(words: dict[str, list[str]]) -> str:
    lines = [f"complete -c dtdebug -n __fish_use_subcommand -a '{' '.join(words)}'"]
    for name, of in words.items():
        seen = f"-n '__fish_seen_subcommand_from {name}'"
        options = [
            f"-l {w[2:]}" if w.startswith("--") else f"-s {w[1:]}" for w in of if w.startswith("-") and len(w) > 1
        ]
        choices = [w for w in of if not w.startswith("-")]
        lines += [f"complete -c dtdebug {seen} {option}" for option in options]
        lines += [f"complete -c dtdebug {seen} -a '{' '.join(choices)}'"] if choices else []
    return "\n".join(lines) + "\n"
