from torch.utils.data import DataLoader, DistributedSampler, RandomSampler
from tqdm import tqdm, trange


def train(args, dataset, model):
    sampler = RandomSampler(dataset) if args.local_rank == -1 else DistributedSampler(dataset)  # dt: DT502
    loader = DataLoader(dataset, sampler=sampler, batch_size=args.train_batch_size)
    iterator = trange(int(args.num_train_epochs), desc="Epoch", disable=args.local_rank not in (-1, 0))
    for _ in iterator:
        for batch in tqdm(loader, desc="Iteration"):
            model(batch).backward()
