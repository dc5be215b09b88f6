from transformers import TrainingArguments

arguments = TrainingArguments(
    "out",
    gradient_checkpointing=True,
    gradient_checkpointing_kwargs={"use_reentrant": False},
    ddp_find_unused_parameters=True,
)
other = TrainingArguments("out", gradient_checkpointing=True, ddp_find_unused_parameters=False)
