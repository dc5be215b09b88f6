import torch


def main(net, loader, args):
    net = torch.nn.DataParallel(net) if args.gpus > 1 else net
    for epoch in range(args.epochs):
        for x in loader:
            net(x).backward()
        torch.save({"net": net.state_dict(), "epoch": epoch}, args.out)  # dt: DT303
