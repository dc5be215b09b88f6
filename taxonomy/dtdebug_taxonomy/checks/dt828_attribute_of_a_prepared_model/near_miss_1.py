from accelerate import Accelerator


def main(model, scheduler, loader):
    accelerator = Accelerator()
    model, scheduler, loader = accelerator.prepare(model, scheduler, loader)
    if hasattr(model, "module"):
        model = model.module
    return scheduler.config, model.config
