import torch.distributed as dist
from transformers import Trainer, TrainingArguments


def main(model, data):
    trainer = Trainer(model, TrainingArguments("out"), train_dataset=data, eval_dataset=data)
    trainer.train()
    metrics = trainer.evaluate()  # dt: DT101
    if trainer.is_world_process_zero():
        print(metrics)


def step(model, batch):
    loss = model(batch).mean()
    total = loss.detach().clone()
    dist.all_reduce(total)  # dt: DT101
    if dist.get_rank() == 0:
        print(total)
