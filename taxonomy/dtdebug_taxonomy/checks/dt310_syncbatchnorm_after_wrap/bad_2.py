from torch import nn


class Trainer:
    def __init__(self, model, args):
        self.model = nn.parallel.DistributedDataParallel(model, device_ids=[args.gpu])
        print("wrapped")
        if args.sync_bn:
            self.model = nn.SyncBatchNorm.convert_sync_batchnorm(self.model)  # dt: DT310
