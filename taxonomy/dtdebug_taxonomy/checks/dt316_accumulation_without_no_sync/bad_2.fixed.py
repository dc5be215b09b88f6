import torch


class Trainer:
    def __init__(self, model, args):
        self.model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[args.gpu])
        self.scaler, self.args = torch.amp.GradScaler(), args

    def epoch(self, loader, optimizer):
        for step, batch in enumerate(loader):
            self.model.require_backward_grad_sync = step % self.args.accumulation == 0 or step == len(loader) - 1
            loss = self.model(batch).loss / self.args.accumulation
            self.scaler.scale(loss).backward()  # dt: DT316
            if step % self.args.accumulation == 0 or step == len(loader) - 1:
                self.scaler.step(optimizer)
                self.scaler.update()
