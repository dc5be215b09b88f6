import deepspeed

config = {
    "train_micro_batch_size_per_gpu": "auto",  # dt: DT702
    "gradient_clipping": "auto",  # dt: DT702
    "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"},
}
engine, optimizer, _, _ = deepspeed.initialize(model=model, config=config)
