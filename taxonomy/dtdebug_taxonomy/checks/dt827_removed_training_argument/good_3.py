import transformers

args = transformers.TrainingArguments("out", deepspeed="ds_config.json", gradient_accumulation_steps=4)
