from accelerate import Accelerator
from accelerate.utils import GradientAccumulationPlugin


def main(args, model, optimizer, loader):
    plugin = GradientAccumulationPlugin(num_steps=args.gradient_accumulation_steps)
    accelerator = Accelerator(gradient_accumulation_plugin=plugin)
    for batch in loader:
        with accelerator.accumulate(model):
            accelerator.backward(model(**batch).loss)
            optimizer.step()
