from accelerate import notebook_launcher


def training_loop(mixed_precision="no", seed=42, batch_size=64):
    print(mixed_precision, seed, batch_size)


args = ("fp16", 42, 64)
notebook_launcher(training_loop, args, num_processes=2)
notebook_launcher(training_loop, args=("fp16",), num_processes=2)
