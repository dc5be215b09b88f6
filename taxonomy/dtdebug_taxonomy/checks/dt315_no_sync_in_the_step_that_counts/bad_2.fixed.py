from contextlib import nullcontext


def train(model, loader, optimizer, args):
    for step, batch in enumerate(loader):
        with model.no_sync() if not (step % args.accumulate == args.accumulate - 1) else nullcontext():  # dt: DT315
            model(batch).loss.backward()
        if step % args.accumulate == args.accumulate - 1:
            optimizer.step()
