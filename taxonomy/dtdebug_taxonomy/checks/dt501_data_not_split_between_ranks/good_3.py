from torch.utils.data import DataLoader

loader = DataLoader([1, 2, 3], shuffle=True)
for x in loader:
    print(x)
