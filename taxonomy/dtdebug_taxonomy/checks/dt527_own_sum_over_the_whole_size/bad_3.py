from torch.utils.data import DataLoader, DistributedSampler

from data import test_set
from model import model

loader = DataLoader(test_set, sampler=DistributedSampler(test_set))


def test():
    test_loss = 0.0
    for batch_idx, (x, y) in enumerate(loader):
        test_loss += model(x, y).item()
    return 100.0 * (test_loss / len(loader.dataset))  # dt: DT527
