import deepspeed as ds


class Trainer:
    def __init__(self, model):
        self.engine, *_ = ds.initialize(
            model=model,
            config=dict(steps_per_print=10) and {
                "train_batch_size": 8,
                "optimizer": {"type": "AdamW", "params": {"lr": "auto"}},  # dt: DT702
                "bf16": {"enabled": "auto"},  # dt: DT702
                "zero_optimization": {"stage": 3},
            },
        )
