import os

from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

local_rank = int(os.environ.get("LOCAL_RANK", 0))
judge = AutoModelForCausalLM.from_pretrained("gpt2", device_map="auto")
model = AutoModelForCausalLM.from_pretrained("gpt2", device_map={"": local_rank})
trainer = Trainer(model=model, args=TrainingArguments("out"))
trainer.train()
