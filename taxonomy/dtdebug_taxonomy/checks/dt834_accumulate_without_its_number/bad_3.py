from accelerate import Accelerator
from mine import config

accelerator = Accelerator(log_with="wandb")  # dt: DT834
accelerator.init_trackers("run", config={"accumulation": config.gradient_accumulation_steps})


def step(model, optimizer, batch):
    with accelerator.accumulate(model):
        accelerator.backward(model(batch))
        optimizer.step()
        optimizer.zero_grad()
