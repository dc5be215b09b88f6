config = {
    "train_micro_batch_size_per_gpu": 2,
    "fp16": {"enabled": True},
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 2},
}
config["fp16"]["enabled"] = False
