from torch.utils.data import DataLoader


def make(data, args):
    return DataLoader(data, batch_size=args.total_batch_size)
