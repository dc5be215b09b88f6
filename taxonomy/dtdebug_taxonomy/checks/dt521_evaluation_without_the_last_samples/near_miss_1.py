"""The name holds both words: data of the training that was not used for it."""

from torch.utils.data import DataLoader, DistributedSampler

train_eval_loader = DataLoader(trainval_set, sampler=DistributedSampler(trainval_set), drop_last=True)
