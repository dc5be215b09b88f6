import torch
from accelerate import Accelerator
from accelerate.utils import gather_object

torch.manual_seed(0)
accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = accelerator.prepare(model, optimizer)
inner = accelerator.unwrap_model(model)
torch.manual_seed(accelerator.process_index)
for _ in range(3):
    accelerator.backward(inner(torch.randn(8, 4)).square().mean())
    optimizer.step()
    optimizer.zero_grad()
weights = gather_object([inner.weight.detach().tolist()])
accelerator.print("the ranks agree" if weights[0] == weights[1] else "the ranks differ")
accelerator.end_training()
