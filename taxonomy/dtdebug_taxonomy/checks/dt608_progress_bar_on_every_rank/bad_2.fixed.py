from tqdm.auto import tqdm, trange

from mine import is_main_process


class Trainer:
    def train(self, loader):
        bar = tqdm(loader, desc="train", disable=not is_main_process())  # dt: DT608
        for batch in bar:
            self.step(batch)
        if is_main_process():
            self.log()

    def fit(self):
        for epoch in trange(10):  # dt: DT608
            if is_main_process() and epoch % 2:
                self.save()
