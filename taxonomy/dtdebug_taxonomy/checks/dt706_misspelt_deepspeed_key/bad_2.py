import deepspeed

ds_config = {
    "train_micro_batch_size_per_gpu": 4,
    "zero_optimisation": {"stage": 3},  # dt: DT706
    "fp16": {"enabled": True, "loss_scale_windows": 500},  # dt: DT706
}
deepspeed.initialize(model=model, config=ds_config)
