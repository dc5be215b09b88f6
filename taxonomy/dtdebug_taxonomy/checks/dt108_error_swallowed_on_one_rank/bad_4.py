import logging

from torch.nn.parallel import DistributedDataParallel as DDP


def main(config):
    model = DDP(build(config))
    for batch in loader(config):
        loss = model(batch)
        loss.backward()
        config.optimizer.step()


if __name__ == "__main__":
    try:
        main(read())
    except Exception as error:  # dt: DT108
        logging.exception(error)
