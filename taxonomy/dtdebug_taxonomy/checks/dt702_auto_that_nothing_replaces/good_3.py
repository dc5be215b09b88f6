# only writes the file that the Trainer reads
import json

config = {"train_batch_size": "auto", "zero_optimization": {"stage": 2}, "gradient_accumulation_steps": "auto"}
json.dump(config, open("ds.json", "w"))
