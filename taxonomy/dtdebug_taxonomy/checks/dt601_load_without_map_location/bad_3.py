import horovod.torch as hvd
import torch

hvd.init()
torch.cuda.set_device(hvd.local_rank())
path = "runs/best.pth"
if path:
    state = torch.load(  # dt: DT601
        path,
    )
    model.load_state_dict(state)
