import deepspeed

model_engine, _, _, _ = deepspeed.initialize(
    model=model,
    config={
        "train_batch_size": 16,
        "fp16": {"enabled": True, "initial_scale_power": 16},  # dt: DT704
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": 1},
    },
)
