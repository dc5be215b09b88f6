train = dict(
    output_dir="out",
    train_iter=10000,
    train_epoch=0,
    train_micro_batch_size_per_gpu=4,
    zero_optimization=dict(enabled=False, stage=1),
    checkpointer=dict(period=5000, max_to_keep=100),
    evaluation=dict(enabled=True, eval_period=5000),
    log_period=20,
    warmup_ratio=0.01,
)
