from transformers import TrainingArguments

options = {"output_dir": "out", "learning_rate": 1e-4}
args = TrainingArguments(**options, ddp_find_unused_parameters=False)
