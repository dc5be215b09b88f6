from torch.nn.parallel import DistributedDataParallel

from mine import Stopper


def fit(net, train_set, valid_set, optimizer, local_rank, epochs):
    model, stopper = DistributedDataParallel(net, device_ids=[local_rank]), Stopper(3)
    for epoch in range(epochs):
        train_set.sampler.set_epoch(epoch)
        for batch in train_set:
            model(batch).backward()
            optimizer.step()
            optimizer.zero_grad()
        loss = 0.0
        for batch in valid_set:
            loss += model.module(batch).item()
        if stopper.should_stop(loss):  # dt: DT119
            break
