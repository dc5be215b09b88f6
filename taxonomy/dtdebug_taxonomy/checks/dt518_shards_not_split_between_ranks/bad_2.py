import lightning as L
import webdataset as wds


class Data(L.LightningDataModule):
    def train_dataloader(self):
        return wds.WebLoader(wds.WebDataset(self.urls), batch_size=64)  # dt: DT518


trainer = L.Trainer(devices=8, strategy="ddp")
