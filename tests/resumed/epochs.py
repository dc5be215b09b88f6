import argparse, os, random, torch, torch.nn as nn, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--lr", default=0.05, type=float)
parser.add_argument("--epochs", default=5, type=int)
parser.add_argument("--start-epoch", default=0, type=int)
parser.add_argument("--resume", default="", type=str, metavar="PATH")
args = parser.parse_args()

class Toy(Dataset):
    def __init__(self):
        g = torch.Generator().manual_seed(3)
        self.x = torch.randn(48, 10, generator=g)
        self.y = (self.x[:, 0] > 0).long()
    def __len__(self):
        return len(self.x)
    def __getitem__(self, i):
        return self.x[i], self.y[i]

def save_checkpoint(state, filename="checkpoint.pth.tar"):
    torch.save(state, filename)

def main():
    dist.init_process_group("gloo")
    torch.manual_seed(11)
    net = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
    model = DistributedDataParallel(net)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)
    best_acc1 = 0.0
    if args.resume:
        checkpoint = torch.load(args.resume, map_location="cpu")
        args.start_epoch = checkpoint["epoch"]
        best_acc1 = checkpoint["best_acc1"]
        model.load_state_dict(checkpoint["state_dict"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
    sampler = DistributedSampler(Toy())
    loader = DataLoader(Toy(), batch_size=6, sampler=sampler)
    for epoch in range(args.start_epoch, args.epochs):
        sampler.set_epoch(epoch)
        model.train()
        hits = 0
        for images, target in loader:
            output = model(images)
            loss = criterion(output, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hits += (output.argmax(1) == target).sum().item()
        scheduler.step()
        best_acc1 = max(best_acc1, hits / 24)
        if dist.get_rank() == 0:
            save_checkpoint({"epoch": epoch + 1, "arch": "toy", "state_dict": model.state_dict(), "best_acc1": best_acc1,
                             "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()})
        dist.barrier()
    dist.destroy_process_group()

if __name__ == "__main__":
    main()
