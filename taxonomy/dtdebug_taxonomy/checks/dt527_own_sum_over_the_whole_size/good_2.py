from torch.utils.data import DataLoader, DistributedSampler


def main(model, train_set, test_set):
    train = DataLoader(train_set, sampler=DistributedSampler(train_set))
    loader = DataLoader(test_set)
    correct = 0
    for x, y in loader:
        correct += (model(x).argmax(1) == y).sum()
    print(correct / len(loader.dataset), len(train))
