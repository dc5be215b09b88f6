config = {
    "train_batch_size": 8,
    "zero_optimization": {
        "stage": args.stage,
        "offload_param": {"device": "cpu" if args.offload else "none"},
    },
}
