from torchvision.datasets import CIFAR10


def load(rank, path):
    if rank == 0:
        return CIFAR10(path, download=True)
    wait_for_rank_zero()
    return CIFAR10(path)


def synchronised(accelerator, path):
    with accelerator.main_process_first():
        if accelerator.is_main_process:
            CIFAR10(path, download=True)
        return CIFAR10(path)
