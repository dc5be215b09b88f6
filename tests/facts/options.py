"""torchrun.json and launchers.json: the options of launchers, read from their `add_argument` calls."""

from __future__ import annotations

import ast
from pathlib import Path

from sources import constants, download, literal, torch_folder, torch_version, tree

DEEPSPEED, ACCELERATE, HOROVOD = "0.19.8", "1.15.0", "0.28.1"
_FLAGS = {
    *("store_true", "store_false", "store_const", "version", "help", "count", "check_env"),
    *("make_override_true_action", "make_override_false_action", "make_deprecated_bool_action"),
}


def torchrun() -> dict[str, object]:
    """The table of torchrun."""
    module = ast.parse((torch_folder() / "distributed" / "run.py").read_bytes())
    return {
        "source": f"torch {torch_version()}",
        "launchers": {
            "torchrun": launcher(
                module, f"torch {torch_version()}", "https://docs.pytorch.org/docs/stable/elastic/run.html"
            )
        },
    }


def launchers(folder: Path) -> dict[str, object]:
    """The table of the other launchers that are Python packages."""
    deepspeed = tree(download("deepspeed", DEEPSPEED, folder, source=True), "/deepspeed/launcher/runner.py")
    accelerate = tree(download("accelerate", ACCELERATE, folder), "/accelerate/commands/launch.py")
    horovod = tree(download("horovod", HOROVOD, folder, source=True), "/horovod/runner/launch.py")
    return {
        "source": f"deepspeed {DEEPSPEED}, accelerate {ACCELERATE}, horovod {HOROVOD}",
        "launchers": {
            "accelerate launch": launcher(
                accelerate,
                f"accelerate {ACCELERATE}",
                "https://huggingface.co/docs/accelerate/package_reference/cli",
                either_dash=True,
            ),
            "deepspeed": launcher(deepspeed, f"deepspeed {DEEPSPEED}", "https://www.deepspeed.ai/getting-started/"),
            "horovodrun": launcher(
                horovod, f"horovod {HOROVOD}", "https://horovod.readthedocs.io/en/stable/running_include.html"
            ),
        },
    }


def launcher(module: ast.Module, source: str, url: str, *, either_dash: bool = False) -> dict[str, object]:
    """One launcher: its options by their first long spelling.

    Args:
        module: source that makes the parser.
        source: package and version.
        url: its documentation.
        either_dash: the parser takes `-` for `_` in every long option.

    """
    names = constants(module)
    found: dict[str, dict[str, object]] = {}
    for call in ast.walk(module):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument":
            entry = option(call, names, either_dash=either_dash)
            if entry is not None:
                key, fields = entry
                found.setdefault(key, fields)
    return {"source": source, "url": url, "options": dict(sorted(found.items()))}


def option(call: ast.Call, names: dict[str, object], *, either_dash: bool) -> tuple[str, dict[str, object]] | None:
    """One option; None for a positional argument."""
    spelt = [str(a.value) for a in call.args if isinstance(a, ast.Constant) and str(a.value).startswith("-")]
    if not spelt:
        return None
    if either_dash:
        long = [s for s in spelt if s.startswith("--")]
        spelt += ["--" + s[2:].replace("_", "-") for s in long] + ["--" + s[2:].replace("-", "_") for s in long]
        spelt = list(dict.fromkeys(spelt))
    given = {k.arg: k.value for k in call.keywords if k.arg}
    action = given.get("action")
    named = action.func if isinstance(action, ast.Call) else action
    flag = named is not None and (literal(named) or ast.unparse(named)) in _FLAGS
    fields: dict[str, object] = {"spellings": spelt}
    if flag:
        fields["takes_value"] = False
    choices = literal(given.get("choices"), names)
    if isinstance(choices, list | tuple):
        fields["choices"] = list(choices)
    default = literal(given.get("default"), names)
    if default not in (None, "", []) and not flag:
        fields["default"] = str(default)
    if isinstance(given.get("type"), ast.Name):
        fields["type"] = ast.unparse(given["type"])
    return next((s for s in spelt if s.startswith("--")), spelt[0]), fields
