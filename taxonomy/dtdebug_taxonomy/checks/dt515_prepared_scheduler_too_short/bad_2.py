from accelerate import Accelerator
from transformers import get_linear_schedule_with_warmup


def main(args, model, optimizer, loader):
    accelerator = Accelerator(mixed_precision="bf16")
    lr_scheduler = get_linear_schedule_with_warmup(
        optimizer,
        num_warmup_steps=args.warmup,
        num_training_steps=args.max_train_steps,  # dt: DT515
    )
    model, optimizer, loader, lr_scheduler = accelerator.prepare(model, optimizer, loader, lr_scheduler)
