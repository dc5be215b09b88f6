import deepspeed

config = {"train_batch_size": "auto", "gradient_accumulation_steps": 1, "zero_optimization": {"stage": 2}}
config["train_batch_size"] = args.batch_size * world_size
engine, *_ = deepspeed.initialize(model=model, config=config)
