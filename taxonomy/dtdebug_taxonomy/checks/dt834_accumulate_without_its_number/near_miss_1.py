from accelerate import Accelerator


def main(args, options, metrics):
    accelerator = Accelerator(**options)
    with accelerator.accumulate(metrics):
        metrics.add(args.gradient_accumulation_steps)
