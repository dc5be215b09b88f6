import os

from accelerate import Accelerator

accelerator = Accelerator(gradient_accumulation_steps=args.steps)
for global_step, batch in enumerate(loader):
    train_step(batch)
    if global_step % args.checkpointing_steps == 0:
        if accelerator.is_main_process:
            save_path = os.path.join(args.output_dir, f"checkpoint-{global_step}")
            accelerator.save_state(save_path)  # dt: DT103
            logger.info(f"Saved state to {save_path}")
    if global_step == 10 and accelerator.is_main_process:
        folder = f"{args.output_dir}/first"
        accelerator.save_state(folder)  # dt: DT103
