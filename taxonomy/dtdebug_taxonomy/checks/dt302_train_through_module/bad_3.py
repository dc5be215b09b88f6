from torch.nn.parallel import DistributedDataParallel


def train(model, loader, optimizer):
    for inputs in loader:
        outputs = model.module(**inputs)  # dt: DT302
        loss = outputs.loss / 4
        loss.backward()
        optimizer.step()


def main(net, loader, optimizer):
    net = DistributedDataParallel(net)
    train(net, loader, optimizer)
