from accelerate import Accelerator
from mine import EMA, Net, loader

accelerator = Accelerator()
net = Net()
average = EMA(net)
net, loader = accelerator.prepare(net, loader)
accelerator.wait_for_everyone()
if accelerator.is_main_process:
    accelerator.save_model(average, "average")
