import os, torch, torch.nn as nn
import torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

class App:
    def __init__(self, model, opt, sched):
        self.model, self.opt, self.sched, self.step = model, opt, sched, 0
    def state_dict(self):
        model, opt = get_state_dict(self.model, self.opt)
        return {"model": model, "opt": opt, "sched": self.sched.state_dict(), "step": self.step}
    def load_state_dict(self, state):
        set_state_dict(self.model, self.opt, model_state_dict=state["model"], optim_state_dict=state["opt"])
        self.step = state["step"]
        self.sched.load_state_dict(state["sched"])

dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3))
fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
app = App(model, opt, torch.optim.lr_scheduler.CosineAnnealingLR(opt, 40))
if os.path.isdir("saved"):
    dcp.load({"app": app}, checkpoint_id="saved")
while app.step < 12:
    own = torch.Generator().manual_seed(2 * app.step + dist.get_rank())
    loss = model(torch.randn(4, 8, generator=own)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    app.sched.step()
    app.step += 1
    if app.step % 4 == 0:
        dcp.save({"app": app}, checkpoint_id="saved")
dist.destroy_process_group()
