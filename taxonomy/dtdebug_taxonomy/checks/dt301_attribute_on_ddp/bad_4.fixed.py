import torch
from torch.nn.parallel import DistributedDataParallel

from nets import Detector


def main(args):
    detector = Detector(args)
    if args.distributed:
        detector = DistributedDataParallel(detector, device_ids=[args.gpu])
    for epoch in range(args.epochs):
        detector.train()
        getattr(detector, "module", detector).anchors(epoch)  # dt: DT301
        if args.rank == 0:
            print(getattr(detector, "module", detector).names)  # dt: DT301
