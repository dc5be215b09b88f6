from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def train(config):
    model = GPT(config).to("cuda")
    optimizer = model.configure_optimizers(0.1, 3e-4)  # dt: DT312
    if config.use_fsdp:
        model = FSDP(model, auto_wrap_policy=policy)
    for x, y in loader:
        model(x, y).backward()
        optimizer.step()
