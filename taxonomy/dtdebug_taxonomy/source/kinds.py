"""Chooses the reader of a file by its name and first lines."""

from __future__ import annotations

import re

from dtdebug_taxonomy.source.config.document import Config
from dtdebug_taxonomy.source.deepspeed import NAME as DEEPSPEED
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.requirements import Dockerfile, Requirements
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.source import Source

_PYTHON, _YAML, _JSON = (".py", ".pyw"), (".yaml", ".yml"), (".json", ".jsonc", ".json5")
_SHELL = re.compile(r"\.(sh|bash|zsh|ksh|sbatch|slurm|sub|pbs|job|qsub|lsf|env)$|(^|[._])env(\.[\w-]+)?$|^\.?envrc$")
_DOCKERFILE = re.compile(r"^(docker|container)file([._-].*)?$|[._-](docker|container)file$")
_REQUIREMENTS = re.compile(r"^([\w.-]*[-_.])?(requirements?|constraints?|reqs?)([-_.][\w.-]+)?\.(txt|in|pip)$")
_SHEBANG = re.compile(r"#![ \t]*(?:\S*/)?(?:env[ \t]+(?:-\S+[ \t]+)*)?(?:\S*/)?(?P<program>[\w.+-]+)")
_DEEPSPEED = re.compile(
    r"\"(zero_optimization|train_micro_batch_size_per_gpu|train_batch_size|gradient_accumulation_steps|fp16|bf16)\"\s*:"
)
_JSON_WITH_VARIABLES = re.compile(r"\"(env|environment|containerEnv|remoteEnv|env_vars)\"\s*:")


def parse_file(path: str, text: str) -> Source | None:
    """Parse a file; None if the checks do not concern its kind."""
    name = path.replace("\\", "/").rpartition("/")[2].lower()
    if name.endswith(_PYTHON):
        return Code(text, path=path)
    if name.endswith(_YAML):
        return Config(text, path=path, language="yaml")
    if name.endswith(_JSON):
        named = DEEPSPEED.search(name) and not text.lstrip("\ufeff \t\r\n").startswith("[")
        wanted = named or _DEEPSPEED.search(text)
        return Config(text, path=path, language="json") if wanted or _JSON_WITH_VARIABLES.search(text) else None
    if _DOCKERFILE.search(name):
        return Dockerfile(text, path=path)
    if _REQUIREMENTS.search(name) or (name.endswith(".txt") and "/requirements/" in f"/{path.lower()}"):
        return Requirements(text, path=path)
    if _SHELL.search(name):
        return Script(text, path=path)
    return _by_first_line(path, name, text)


def is_known(name: str) -> bool:
    """True if `parse_file` may accept a file of this name; its content decides."""
    low = name.lower()
    names = (_SHELL, _DOCKERFILE, _REQUIREMENTS)
    return low.endswith((*_PYTHON, *_YAML, *_JSON)) or any(n.search(low) for n in names)


def _by_first_line(path: str, name: str, text: str) -> Source | None:
    """Parse a file without a known suffix that begins with `#!`."""
    found = _SHEBANG.match(text[:200].removeprefix("\ufeff"))
    if found is None:
        return None
    program = found["program"]
    if program.startswith("python"):
        return Code(text, path=path)
    return Script(text, path=path) if program in {"sh", "bash", "zsh", "ksh", "dash", "csh", "tcsh"} else None
