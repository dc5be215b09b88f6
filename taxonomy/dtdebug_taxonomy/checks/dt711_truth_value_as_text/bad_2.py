config = {
    "train_micro_batch_size_per_gpu": 2,
    "zero_optimization": {
        "stage": 2,
        "contiguous_gradients": "False",  # dt: DT711
    },
}
