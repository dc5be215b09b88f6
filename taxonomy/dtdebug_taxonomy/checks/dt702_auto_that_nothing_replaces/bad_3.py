from deepspeed import initialize


def ds_config():
    return {
        "train_batch_size": 32,
        "gradient_accumulation_steps": "auto",  # dt: DT702
        "fp16": {"enabled": True},
        "zero_optimization": {"stage": 1},
    }


engine = initialize(model=net, config=ds_config())[0]
