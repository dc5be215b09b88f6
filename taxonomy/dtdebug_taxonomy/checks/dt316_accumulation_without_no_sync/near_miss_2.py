from torch.nn.parallel import DistributedDataParallel


def train(net, batches, optimizer, every):
    net = DistributedDataParallel(net)
    for step, batch in enumerate(batches):
        loss = net(batch)
        if every == 1:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        elif (step + 1) % every == 0:
            loss.backward()
            optimizer.step()
