import os

from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

if "LOCAL_RANK" in os.environ:
    model = AutoModelForCausalLM.from_pretrained("gpt2")
else:
    model = AutoModelForCausalLM.from_pretrained("gpt2", device_map="auto")
trainer = Trainer(model=model, args=TrainingArguments("out"))
trainer.train()
