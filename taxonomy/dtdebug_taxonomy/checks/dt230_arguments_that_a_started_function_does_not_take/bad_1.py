from accelerate import Accelerator, notebook_launcher


def training_loop(mixed_precision="no"):
    accelerator = Accelerator(mixed_precision=mixed_precision)
    accelerator.print("started")


args = ("fp16")  # dt: DT230
notebook_launcher(training_loop, args, num_processes=2)
