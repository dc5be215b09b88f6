import torch


class Trainer:
    def __init__(self, model, args):
        self.model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[args.local_rank])
        if args.freeze_backbone:
            self.freeze()

    def freeze(self):
        for name, param in self.model.named_parameters():
            if "backbone" in name:
                param.requires_grad_(False)  # dt: DT306
