config = {
    "train_micro_batch_size_per_gpu": 2,
    "fp16": {"enabled": args.fp16},
    "bf16": {"enabled": not args.fp16},
    "zero_optimization": {"stage": 2},
}
