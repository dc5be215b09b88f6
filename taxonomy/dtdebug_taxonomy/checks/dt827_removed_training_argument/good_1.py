from transformers import TrainingArguments

args = TrainingArguments("out", per_device_train_batch_size=8, fsdp="full_shard", bf16=True)
