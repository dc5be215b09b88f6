import deepspeed

config = {
    "train_batch_size": 100,
    "train_micro_batch_size_per_gpu": 8,
    "zero_optimization": {"stage": 1},
}
config["train_batch_size"] = 8 * world_size
engine, *_ = deepspeed.initialize(model=model, config=config)
