import torch
from deepspeed import zero


def widen(model, table):
    head = model.lm_head
    with zero.GatheredParameters([head.weight, head.bias], modifier_rank=0), torch.no_grad():  # dt: DT710
        for i, (p, new) in enumerate(zip(head.parameters(), table)):
            p.data = new.to(p.device)
            print(i)
