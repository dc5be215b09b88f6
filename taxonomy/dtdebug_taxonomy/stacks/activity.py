"""Classifies what a rank is doing by its stack: slow but healthy work, and the stages of a training run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from dtdebug_taxonomy.model.ranks import Frame, RankState
from dtdebug_taxonomy.stacks.frames import is_library

Activity = Literal[
    "initializing", "importing", "compiling", "downloading", "preparing_data", "loading_checkpoint",
    "saving_checkpoint", "evaluating", "training", "exiting",
]  # fmt: skip
SLOW: frozenset[Activity] = frozenset(
    ("importing", "compiling", "downloading", "preparing_data", "loading_checkpoint", "saving_checkpoint", "evaluating")
)
"""Activities that may take minutes in a healthy job while the other ranks wait."""

_COMPILES = "compile _compile compile_inner compile_fx compile_fx_inner _compile_fx_inner fx_codegen_and_compile"
"""Functions that compile; other frames of these files also occur whenever compiled code runs."""
_DOING: tuple[tuple[str, str, Activity], ...] = (
    ("torch/distributed/", "init_process_group rendezvous _new_process_group_helper new_group", "initializing"),
    ("torch/nn/parallel/distributed.py", "__init__", "initializing"),
    ("torch/distributed/fsdp/", "__init__ _init_param_handle_from_module _sync_module_states", "initializing"),
    ("torch/distributed/checkpoint/", "save async_save save_state_dict", "saving_checkpoint"),
    ("torch/serialization.py", "save _save", "saving_checkpoint"),
    ("safetensors/", "save_file save serialize_file", "saving_checkpoint"),
    ("torch/distributed/checkpoint/", "load load_state_dict", "loading_checkpoint"),
    ("torch/serialization.py", "load _load", "loading_checkpoint"),
    ("safetensors/", "load_file load safe_open", "loading_checkpoint"),
    ("torch/distributed/distributed_c10d.py", "destroy_process_group", "exiting"),
    ("torch/_inductor/", f"{_COMPILES} codegen_and_compile compile_to_module load_by_key_path", "compiling"),
    ("torch/_functorch/", "aot_module_simplified create_aot_dispatcher_function", "compiling"),
    ("torch/_dynamo/", f"{_COMPILES} call_user_compiler transform", "compiling"),
    ("triton/compiler/", "*", "compiling"),
    ("triton/runtime/autotuner.py", "*", "compiling"),
    ("torch/utils/cpp_extension.py", "*", "compiling"),
    ("torch/utils/_cpp_extension_versioner.py", "*", "compiling"),
    ("numba/core/", "*", "compiling"),
    ("huggingface_hub/", "hf_hub_download snapshot_download http_get xet_get", "downloading"),
    ("requests/", "request get send iter_content", "downloading"),
    ("urllib3/", "urlopen read stream", "downloading"),
    ("urllib/request.py", "urlopen urlretrieve", "downloading"),
    ("torch/hub.py", "download_url_to_file load_state_dict_from_url", "downloading"),
    ("boto3/", "*", "downloading"),
    ("/datasets/", "load_dataset map filter _map_single save_to_disk load_from_disk builder_cls", "preparing_data"),
    ("/datasets/builder.py", "*", "preparing_data"),
    ("/tokenizers/", "*", "preparing_data"),
    ("/transformers/tokenization", "*", "preparing_data"),
    ("/sentencepiece/", "*", "preparing_data"),
    ("torch/autograd/", "backward _engine_run_backward", "training"),
    ("torch/optim/", "step", "training"),
    ("<frozen importlib", "_find_and_load _load_unlocked _call_with_frames_removed", "importing"),
)
"""Library frames as (part of the path, functions or `*`, activity); the innermost listed frame counts."""
_CALLED: tuple[tuple[str, Activity], ...] = (
    (r"(?:\w{0,30}_)?(?:evaluate|evaluation|validate|validation|eval|predict)(?:_\w{0,30})?", "evaluating"),
    (r"(?:\w{0,30}_)?save(?:_\w{0,30})?", "saving_checkpoint"),
    (r"(?:\w{0,30}_)?download(?:_\w{0,30})?", "downloading"),
    (r"(?:\w{0,30}_)?(?:tokeni[sz]e|preprocess|(?:prepare|build)_(?:data|index))\w{0,30}", "preparing_data"),
    (r"(?:\w{0,30}_)?(?:load_checkpoint|resume|restore)(?:_\w{0,30})?", "loading_checkpoint"),
    (r"(?:\w{0,30}_)?(?:train|fit)(?:_(?:step|epoch|one_epoch|loop|model|batch))?", "training"),
)
"""Names of the user's functions, with the activity."""


_COMPILERS = re.compile(
    r"(?:\S{0,300}/)?(?:(?:[\w.-]{0,60}-)?(?:g\+\+|gcc|c\+\+|cc|clang|clang\+\+)(?:-\d{1,3})?|cc1|cc1plus|nvcc|cicc"
    r"|cudafe\+\+|fatbinary|ptxas|hipcc|icpx?|ninja|make|cmake|rustc|cargo|ld(?:\.\w{1,10})?|bazel)(?:\s|$)"
)
"""Programs that build others, at the beginning of a command line."""


def is_compiler(command: str) -> bool:
    """True if the command line runs a compiler, a linker, or a tool that starts them."""
    return _COMPILERS.match(command) is not None


def activity(state: RankState) -> Activity | Literal[""]:
    """Return the rank's activity, or "" if its stack does not show one."""
    return doing(state.stack)


def doing(stack: Sequence[Frame]) -> Activity | Literal[""]:
    """Return the activity of the innermost frame that shows one; evaluation inside a training loop is evaluation."""
    for frame in reversed(stack):
        if is_library(frame.file):
            file = frame.file.replace("\\", "/")
            for place, functions, what in _DOING:
                if place in file and (functions == "*" or frame.function in functions.split()):
                    return what
        else:
            for function, what in _CALLED:
                if re.fullmatch(function, frame.function):
                    return what
    return ""


_SYNCS = frozenset(("synchronize", "wait_stream", "wait"))
_INNER = 3


def in_step_of_all(state: RankState) -> bool:
    """True if a rank is in communication, in a backward pass, or waits for its device."""
    if state.pending is not None or (state.waiting is not None and state.waiting.kind == "collective"):
        return True
    return is_in_backward(state) or any(
        f.function in _SYNCS and "/torch/cuda/" in f.file.replace("\\", "/") for f in _inner(state)
    )


def is_in_backward(state: RankState) -> bool:
    """True if the innermost frames of a rank are those of a backward pass."""
    return any("/torch/autograd/" in f.file.replace("\\", "/") for f in _inner(state))


def _inner(state: RankState) -> list[Frame]:
    return [f for f in state.stack[-_INNER:] if is_library(f.file)]
