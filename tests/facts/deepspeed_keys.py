"""deepspeed_config.json: the keys of DeepSpeed's JSON configuration, from its models, constants and Transformers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from frameworks import TRANSFORMERS
from options import ACCELERATE, DEEPSPEED
from sources import class_named, constants, download, fields, literal, tree

_MODELS = {
    "bf16": ("runtime/precision_config.py", "DeepSpeedBF16Config"),
    "comms_logger": ("comm/config.py", "CommsLoggerConfig"),
    "compile": ("compile/config.py", "CompileConfig"),
    "comet": ("monitor/config.py", "CometConfig"),
    "csv_monitor": ("monitor/config.py", "CSVConfig"),
    "fp16": ("runtime/precision_config.py", "DeepSpeedFP16Config"),
    "tensor_parallel": ("runtime/tensor_parallel/config.py", "TPTrainingConfig"),
    "tensorboard": ("monitor/config.py", "TensorBoardConfig"),
    "timers.throughput": ("utils/config.py", "DeepSpeedThroughputTimerConfig"),
    "wandb": ("monitor/config.py", "WandbConfig"),
    "zero_optimization": ("runtime/zero/config.py", "DeepSpeedZeroConfig"),
    "zero_optimization.leaf_module": ("runtime/zero/leaf_module_config.py", "DeepSpeedZeroLeafModuleConfig"),
    "zero_optimization.offload_optimizer": ("runtime/zero/offload_config.py", "DeepSpeedZeroOffloadOptimizerConfig"),
    "zero_optimization.offload_param": ("runtime/zero/offload_config.py", "DeepSpeedZeroOffloadParamConfig"),
    "zero_optimization.zenflow": ("runtime/zenflow/zenflow_config.py", "ZenFlowConfig"),
}
"""Sections that are pydantic models."""
_CONSTANTS = {
    "activation_checkpointing": ("runtime/activation_checkpointing/config.py", "ACT_CHKPT_"),
    "aio": ("runtime/swap_tensor/constants.py", "AIO_"),
    "checkpoint": ("runtime/constants.py", "CHECKPOINT_"),
    "flops_profiler": ("profiling/constants.py", "FLOPS_PROFILER_"),
    "torch_autocast": ("runtime/constants.py", "TORCH_AUTOCAST_"),
}
"""Sections that are constants with a common beginning."""
_NAMED = {
    "checkpoint": (
        "tag_validation",
        "load_universal",
        "use_node_local_storage",
        "parallel_write",
        "parallel_write.pipeline_stage",
    ),
    "data_types": ("grad_accum_dtype", "param_dtype", "buffer_dtype", "keep_in_fp32_modules"),
    "optimizer": ("type", "params", "legacy_fusion"),
    "pipeline": ("stages", "partition", "seed_layers", "activation_checkpoint_interval"),
    "scheduler": ("type", "params"),
    "": ("communication_data_type", "seq_parallel_communication_data_type", "bfloat16"),
}
"""Keys that stand in the code one by one."""
_OPEN = (
    *("autotuning", "curriculum_learning", "data_efficiency", "datastates_ckpt", "elasticity", "expert_parallel"),
    *("hybrid_engine", "optimizer.params", "pipeline", "scheduler.params", "weight_quantization"),
)
"""Sections of which this table does not know every key."""


def deepspeed_config(folder: Path) -> dict[str, object]:
    """The table: dotted key -> type, default, whether "auto" is filled in, what it was replaced by."""
    archive = download("deepspeed", DEEPSPEED, folder, source=True)

    def read(path: str) -> ast.Module:
        return tree(archive, f"/deepspeed/{path}")

    shared = constants(read("runtime/constants.py"))
    config = read("runtime/config.py")
    keys: dict[str, dict[str, object]] = dict(_scalars(config, shared))
    for section, (path, name) in _MODELS.items():
        module = read(path)
        known = {**shared, **constants(module)}
        keys[section] = keys.get(section, {}) | {"type": "object"}
        keys.update((f"{section}.{k}", v) for k, v in _model(class_named(module, name), known))
    for section, (path, start) in _CONSTANTS.items():
        known = constants(read(path))
        keys[section] = {"type": "object"}
        for name, key in known.items():
            if name.startswith(start) and isinstance(key, str) and f"{name}_DEFAULT" in known:
                keys[f"{section}.{key}"] = _default(known[f"{name}_DEFAULT"])
    for section, names in _NAMED.items():
        if section:
            keys.setdefault(section, {"type": "object"})
        for name in names:
            keys.setdefault(f"{section}.{name}".lstrip("."), {})
    for section in _OPEN:
        keys.setdefault(section, {})["open"] = True
    keys.setdefault("timers", {"type": "object"})
    for key in _filled(folder):
        if (known_key := keys.get(key)) is not None or key.startswith(tuple(f"{o}." for o in _OPEN)):
            keys[key] = (known_key or {}) | {"auto": True}
    removed = _removed(config)
    return {
        "source": f"deepspeed {DEEPSPEED}; auto: transformers {TRANSFORMERS[-1]}, accelerate {ACCELERATE}",
        "keys": {k: v for k, v in sorted(keys.items()) if k not in removed},
        "removed": removed,
    }


def _default(default: object) -> dict[str, object]:
    kind = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}.get(type(default))
    return ({"type": kind} if kind else {}) | ({} if default is None else {"default": default})


def _scalars(config: ast.Module, known: dict[str, object]) -> Iterator[tuple[str, dict[str, object]]]:
    """Top-level keys: `get_scalar_param(param_dict, NAME, DEFAULT)`."""
    for call in ast.walk(config):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "get_scalar_param":
            where, name, default = call.args
            if ast.unparse(where) == "param_dict" and isinstance(key := literal(name, known), str) and key.islower():
                yield key, _default(literal(default, known))


def _model(cls: ast.ClassDef, known: dict[str, object]) -> Iterator[tuple[str, dict[str, object]]]:
    """The fields of a pydantic model, under the names that the JSON uses."""
    for name, (annotation, given) in fields(cls).items():
        entry: dict[str, object] = {"type": kind} if (kind := _kind(annotation)) else {}
        key = name
        default = given
        if isinstance(given, ast.Call) and ast.unparse(given.func) == "Field":
            options = {k.arg: k.value for k in given.keywords}
            key = str(literal(options["alias"])) if "alias" in options else name
            extra = options.get("json_schema_extra")
            if isinstance(extra, ast.Dict):
                replaced = {literal(k): v for k, v in zip(extra.keys, extra.values, strict=True)}
                entry["replaced_by"] = literal(replaced.get("new_param"))
            default = given.args[0] if given.args else options.get("default")
        if isinstance(default, ast.Call) and ast.unparse(default.func) == "pp_int":
            default = default.args[0]
        found = literal(default, known)
        if isinstance(found, bool | int | float | str | list):
            entry["default"] = int(found) if isinstance(found, float) and found == int(found) else found
        yield key, entry


def _kind(annotation: str) -> str:
    """The type in JSON; empty where it may be several."""
    bare = annotation[9:-1] if annotation.startswith("Optional[") else annotation
    plain = {"bool": "boolean", "int": "integer", "float": "number", "str": "string", "Path": "string", "list": "array"}
    if bare in plain:
        return plain[bare]
    if bare.startswith("List"):
        return "array"
    if bare.endswith("Enum"):
        return "integer" if "Stage" in bare else "string"
    return "object" if bare.endswith("Config") or bare.startswith("Dict") else ""


def _filled(folder: Path) -> set[str]:
    """Keys for which Transformers or Accelerate put a value where the file says "auto"."""
    found = set()
    trainer = tree(download("transformers", TRANSFORMERS[-1], folder), "/transformers/integrations/deepspeed.py")
    plugin = download("accelerate", ACCELERATE, folder)
    for module in (
        trainer,
        tree(plugin, "/accelerate/accelerator.py"),
        tree(plugin, "/accelerate/utils/dataclasses.py"),
    ):
        for call in ast.walk(module):
            named = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
            if named and call.func.attr in ("fill_match", "fill_only") and call.args:
                found.add(literal(call.args[0]))
            if isinstance(call, ast.Dict):
                pairs = zip(call.keys, call.values, strict=True)
                found |= {literal(k) for k, v in pairs if k is not None and literal(v) == "auto"}
            if isinstance(call, ast.Assign) and ast.unparse(call.targets[0]) == "plugin_to_config_mapping":
                found |= set(literal(call.value).values())
    return {k for k in found if isinstance(k, str) and k.replace("_", "").replace(".", "").isalnum()}


def _removed(config: ast.Module) -> list[str]:
    tables = {"_REMOVED_TOP_LEVEL_CONFIG_KEYS": "", "_REMOVED_ZERO_CONFIG_KEYS": "zero_optimization."}
    return sorted(
        tables[node.targets[0].id] + str(literal(key))
        for node in config.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in tables
        for key in node.value.keys
    )
