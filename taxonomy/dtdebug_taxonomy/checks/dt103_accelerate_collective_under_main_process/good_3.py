from accelerate import Accelerator


def train(accelerator, dataset):
    if not accelerator.is_main_process:
        accelerator.wait_for_everyone()
    dataset = dataset.map(tokenize)
    if accelerator.is_main_process:
        accelerator.wait_for_everyone()
    accelerator.save_state("out")
    return accelerator.reduce(loss, "mean") if accelerator.num_processes > 1 else loss
