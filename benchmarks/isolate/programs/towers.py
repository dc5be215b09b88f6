"""Two towers; in text-only steps the picture tower gets no gradient."""
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        self.text, self.picture, self.out = nn.Linear(10, 20), nn.Linear(30, 20), nn.Linear(20, 2)
    def forward(self, text, picture=None):
        h = self.text(text)
        if picture is not None:
            h = h + self.picture(picture)
        return self.out(h.relu())

def main():
    dist.init_process_group("gloo")
    model = DDP(Towers())
    opt = torch.optim.Adam(model.parameters())
    for step in range(10):
        text, picture = torch.randn(4, 10), torch.randn(4, 30) if step % 3 != 2 else None
        loss = model(text, picture).square().mean()
        opt.zero_grad(); loss.backward(); opt.step()
    dist.destroy_process_group()

main()
