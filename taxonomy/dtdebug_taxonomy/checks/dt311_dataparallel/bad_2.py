from torch.nn.parallel import DataParallel


def main(net, gpus):
    if len(gpus) > 1:
        net = DataParallel(net, device_ids=gpus)  # dt: DT311
    return net
