"""Qualified names that several checks share, in the form of `source.names.canonical`."""

from __future__ import annotations

DIST = "torch.distributed."

COLLECTIVES = {
    DIST + name
    for name in (
        *("all_reduce", "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "monitored_barrier"),
        *("all_gather", "all_gather_into_tensor", "all_gather_coalesced", "all_gather_object"),
        *("broadcast", "broadcast_object_list", "gather", "gather_object", "reduce"),
        *("reduce_scatter", "reduce_scatter_tensor", "scatter", "scatter_object_list"),
    )
}
"""Functions that every rank of the group must call in the same order
(https://docs.pytorch.org/docs/stable/distributed.html#collective-functions)."""

ROOTS = {
    "broadcast": ("src", 1, 2),
    "broadcast_object_list": ("src", 1, 2),
    "reduce": ("dst", 1, 3),
    "gather": ("dst", 2, 3),
    "gather_object": ("dst", 2, 3),
    "scatter": ("src", 2, 3),
    "scatter_object_list": ("src", 2, 3),
}
"""Collective -> argument that names the root, its position, and the position of the group."""

DDP = "torch.nn.parallel.DistributedDataParallel"
FSDP = "torch.distributed.fsdp.FullyShardedDataParallel"
FULLY_SHARD = {"torch.distributed.fsdp.fully_shard", "torch.distributed._composable.fsdp.fully_shard"}
INIT = DIST + "init_process_group"
SAMPLER = "torch.utils.data.DistributedSampler"
LOADER = "torch.utils.data.DataLoader"
OPTIMIZERS = {
    f"torch.optim.{name}"
    for name in (
        *("SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "Adamax", "RMSprop", "NAdam", "RAdam", "Rprop", "LBFGS"),
        *("ASGD", "SparseAdam", "Adafactor"),
    )
}

TRAINERS = (
    *(f"transformers.{name}" for name in ("Trainer", "Seq2SeqTrainer")),
    *(f"trl.{name}Trainer" for name in ("SFT", "DPO", "GRPO", "Reward", "KTO")),
)
"""Hugging Face's Trainer and its subclasses."""
