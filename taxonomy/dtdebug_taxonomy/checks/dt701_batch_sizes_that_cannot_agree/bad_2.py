import deepspeed

MICRO = 16


def engine(model):
    config = {
        "train_batch_size": 24,  # dt: DT701
        "train_micro_batch_size_per_gpu": MICRO,
        "optimizer": {"type": "Adam", "params": {"lr": 1e-4}},
        "fp16": {"enabled": True},
    }
    return deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)[0]
