"""Reads the configuration that Hydra composes for a command: the files of a group and the overrides."""

from __future__ import annotations

import ast
import posixpath
import re
from typing import NamedTuple

from dtdebug_taxonomy.checks.shared.configured import Setting
from dtdebug_taxonomy.checks.shared.programs import unknown_words
from dtdebug_taxonomy.source.config.document import Config
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.started_programs import StartedProgram
from dtdebug_taxonomy.source.text import whole_number

_OVERRIDE = re.compile(r"\+{0,2}([\w./@-]+)=(.*)")
_GLOBAL = frozenset({"experiment", "debug", "hparams_search"})
"""Groups that may change any other."""
_FILES = 4
"""Maximum number of files of a group, each of which names the next."""


class Group(NamedTuple):
    """Configuration group as a command composes it."""

    files: list[Config]
    """The chosen file, then those that it builds on."""
    overridden: dict[str, str]
    """Keys that the command overrides."""

    def find(self, key: str) -> tuple[object, str] | None:
        """Return the value of a key and its location; None if it is not set."""
        if key in self.overridden:
            text = self.overridden[key]
            return (text if (number := whole_number(text)) is None else number), "here"
        for file in self.files:
            node = file.roots[0].get(key)
            if node is not None:
                return node.value, f"in {Setting(node, file).where}"
        return None


def group(script: Script, start: StartedProgram, code: Code, name: str) -> Group | None:
    """Return a group of a program's configuration; None if it is unknown."""
    folder, primary = _primary(code)
    words = [script.resolve(w.text) for w in start.arguments]
    if code.project is None or primary is None or unknown_words(start.arguments) or {"-m", "--multirun"} & set(words):
        return None
    given = {found[1]: found[2] for w in words if (found := _OVERRIDE.fullmatch(w)) is not None}
    chosen: dict[str, object] = {}
    defaults = primary.roots[0].get("defaults")
    for item in defaults.items if defaults is not None else ():
        chosen |= {key: entry.node.value for key, entry in item.entries.items()}
    chosen |= {key: None if value == "null" else value for key, value in given.items() if key in {name, *_GLOBAL}}
    choice = chosen.get(name)
    if not isinstance(choice, str) or any(chosen.get(key) for key in _GLOBAL) or primary.roots[0].get(name) is not None:
        return None
    files: list[Config] = []
    while choice is not None and len(files) < _FILES:
        file = code.project.document(posixpath.join(folder, name, f"{choice}.yaml"))
        if file is None:
            return None
        files.append(file)
        below = file.roots[0].get("defaults")
        names = [i.value for i in below.items if i.value != "_self_"] if below is not None else []
        choice = names[0] if len(names) == 1 and isinstance(names[0], str) else None
        if names and choice is None:
            return None
    keys = {key.removeprefix(f"{name}."): value for key, value in given.items() if key.startswith(f"{name}.")}
    return Group(files, keys)


def _primary(code: Code) -> tuple[str, Config | None]:
    """Return the folder and the file that `@hydra.main` names."""
    calls = [c for c in code.calls("hydra.main") if isinstance(code.parent.get(c), ast.FunctionDef)]
    path = code.constant(code.argument(calls[0], "config_path", 0)) if len(calls) == 1 else None
    name = code.constant(code.argument(calls[0], "config_name", 1)) if len(calls) == 1 else None
    if not isinstance(path, str) or not isinstance(name, str) or code.project is None:
        return "", None
    folder = posixpath.normpath(posixpath.join(posixpath.dirname(code.path), path))
    return folder, code.project.document(posixpath.join(folder, f"{name.removesuffix('.yaml')}.yaml"))
