import horovod.torch as hvd
import torch

hvd.init()


def is_main_process():
    return hvd.rank() == 0


def log(writer, loss):
    print("loss", loss) if is_main_process else None  # dt: DT215
    if not hvd.rank:  # dt: DT215
        writer.add_scalar("loss", loss)
    torch.save(loss, "loss.pt") if hvd.rank() == 0 else None
