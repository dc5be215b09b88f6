from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

if __name__ == "__main__":
    dataset = list(range(100))
    sampler = DistributedSampler(dataset)  # dt: DT513
    for batch in DataLoader(dataset, batch_size=8, sampler=sampler):
        print(batch)
