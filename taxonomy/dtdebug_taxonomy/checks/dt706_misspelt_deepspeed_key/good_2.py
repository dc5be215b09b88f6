ds_config = {
    "train_batch_size": 8,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "betas": [0.9, 0.95], "torch_adam": True}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lrs": 0}},
    "flops_profiler": {"enabled": False},
    "zero_optimization": {"stage": 1},
}
