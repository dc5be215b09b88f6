import torch.distributed as dist
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

dist.init_process_group("nccl")
settings = {"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 1}
arguments = TrainingArguments("out", deepspeed=settings)
trainer = Trainer(AutoModelForCausalLM.from_pretrained("gpt2"), arguments)
trainer.train()
if dist.get_rank() == 0:
    trainer.save_model("out")
