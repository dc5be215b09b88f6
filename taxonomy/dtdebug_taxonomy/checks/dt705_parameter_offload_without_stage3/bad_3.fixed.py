import deepspeed

STAGE = 1
config = {
    "train_batch_size": 8,
    "zero_optimization": {
        "stage": 3,
        "offload_param": {  # dt: DT705
            "device": "nvme",
            "nvme_path": "/local",
        },
    },
}
