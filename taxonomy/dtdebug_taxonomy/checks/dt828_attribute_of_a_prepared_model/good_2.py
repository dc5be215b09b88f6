from accelerate import Accelerator


def main(model, optimizer):
    accelerator = Accelerator()
    layers = model.config.layers
    model, optimizer = accelerator.prepare(model, optimizer)
    return model, layers
