import torch


def make_loader(dataset, opt):
    if torch.cuda.device_count() > 1:
        sampler = torch.utils.data.distributed.DistributedSampler(dataset)
    else:
        sampler = None
    return torch.utils.data.DataLoader(
        dataset,
        batch_size=opt.batch_size,
        shuffle=(sampler is None),  # dt: DT503
        pin_memory=True,
        sampler=sampler,
    )
