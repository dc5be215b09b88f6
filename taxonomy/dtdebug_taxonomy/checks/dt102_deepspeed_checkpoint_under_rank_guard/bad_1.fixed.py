import deepspeed
import torch.distributed as dist

model_engine, optimizer, _, _ = deepspeed.initialize(args=args, model=net, model_parameters=net.parameters())
for step, batch in enumerate(loader):
    loss = model_engine(batch)
    model_engine.backward(loss)
    model_engine.step()
    if step % 1000 == 0:
        model_engine.save_checkpoint(args.out, tag=step)  # dt: DT102
# the last one
model_engine.save_checkpoint(  # dt: DT102
    args.out,
    tag="last",
)
