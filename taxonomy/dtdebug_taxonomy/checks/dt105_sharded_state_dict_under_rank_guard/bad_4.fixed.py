import os

from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

from mine import data

arguments = TrainingArguments("out", fsdp="full_shard auto_wrap")
trainer = Trainer(model=AutoModelForCausalLM.from_pretrained("mine"), args=arguments, train_dataset=data)
trainer.train()
trainer.save_model("out")  # dt: DT105
