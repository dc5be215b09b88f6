import torch.distributed as dist
from transformers import Trainer, TrainingArguments


def main(model, data):
    trainer = Trainer(model, TrainingArguments("out"), train_dataset=data, eval_dataset=data)
    trainer.train()
    if trainer.is_world_process_zero():
        metrics = trainer.evaluate()  # dt: DT101
        print(metrics)


def step(model, batch):
    loss = model(batch).mean()
    if dist.get_rank() == 0:
        total = loss.detach().clone()
        dist.all_reduce(total)  # dt: DT101
        print(total)
