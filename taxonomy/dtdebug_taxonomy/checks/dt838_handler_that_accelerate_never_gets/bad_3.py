from accelerate import Accelerator, DataLoaderConfiguration
from accelerate.utils import GradientAccumulationPlugin


def main(steps):
    config = DataLoaderConfiguration(split_batches=True, dispatch_batches=False)  # dt: DT838
    GradientAccumulationPlugin(num_steps=steps, sync_with_dataloader=False)  # dt: DT838
    return Accelerator()
