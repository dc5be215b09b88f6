import torch
from accelerate import Accelerator
from transformers import get_cosine_schedule_with_warmup


def main(args, model, loader, examples):
    accelerator = Accelerator(gradient_accumulation_steps=args.accumulation)
    optimizer = torch.optim.AdamW(model.parameters())
    steps = args.epochs * len(examples) // (args.batch_size * accelerator.num_processes)
    schedule = get_cosine_schedule_with_warmup(optimizer, int(steps * 0.1), steps)  # dt: DT515
    model, optimizer, schedule = accelerator.prepare(model, optimizer, schedule)
    for batch in loader:
        with accelerator.accumulate(model):
            accelerator.backward(model(batch))
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
