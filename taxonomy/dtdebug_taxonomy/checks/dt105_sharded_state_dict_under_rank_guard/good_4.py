import os

from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

from mine import data

arguments = TrainingArguments("out", fsdp="")
trainer = Trainer(model=AutoModelForCausalLM.from_pretrained("mine"), args=arguments, train_dataset=data)
trainer.train()
if int(os.environ["RANK"]) == 0:
    trainer.save_model("out")
