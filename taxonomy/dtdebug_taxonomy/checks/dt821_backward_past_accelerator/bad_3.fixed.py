from accelerate import Accelerator as Acc


def train_epoch(net, criterion, loader, opt, acc):
    for x, y in loader:
        acc.backward(criterion(net(x), y))  # dt: DT821
        opt.step()


def main(net, criterion, loader, opt):
    acc = Acc()
    net, opt = acc.prepare(net, opt)
    loader = acc.prepare(loader)
    train_epoch(net, criterion, loader, opt, acc)
