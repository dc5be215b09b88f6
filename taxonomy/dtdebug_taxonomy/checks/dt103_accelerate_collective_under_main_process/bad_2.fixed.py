import accelerate


class Evaluator:
    def __init__(self, args):
        self.accelerator = accelerate.Accelerator(mixed_precision="bf16")
        self.args = args

    def run(self, model, loader):
        for batch in loader:
            predictions = model(batch).argmax(-1)
            rows = self.accelerator.gather_for_metrics((predictions, batch["labels"]))  # dt: DT103
            if self.accelerator.is_local_main_process:
                self.metric.add_batch(*rows)
        if not self.accelerator.is_main_process:
            return None
        self.accelerator.wait_for_everyone()  # dt: DT103
        return self.metric.compute()
