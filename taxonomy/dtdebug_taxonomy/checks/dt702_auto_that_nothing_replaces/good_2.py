import deepspeed

config = {
    "train_batch_size": 8,
    "gradient_clipping": 1.0,
    "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": "auto"},
}
engine, *_ = deepspeed.initialize(model=model, config=config)
