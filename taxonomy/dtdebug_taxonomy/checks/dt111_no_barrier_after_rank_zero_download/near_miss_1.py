import wandb
from torchvision import datasets

if rank == 0:
    report = wandb.restore("report.txt").download("reports/last.txt")
    print(report)
train_set = datasets.MNIST("data", train=True, download=False)
