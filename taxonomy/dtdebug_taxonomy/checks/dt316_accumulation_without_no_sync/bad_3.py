from torch.nn.parallel import DistributedDataParallel


def main(net, batches, optimizer, every):
    net = DistributedDataParallel(net)
    count = 0
    while batches:
        loss = net(batches.pop())
        loss.backward()  # dt: DT316
        count += 1
        if not count % every:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
