import lightning.pytorch as pl


class Model(pl.LightningModule):
    def on_validation_epoch_end(self):
        metrics = {}
        if self.trainer.is_global_zero:
            metrics["f1"] = self.f1.score(self.predictions)
        self.log_dict(metrics, sync_dist=True)  # dt: DT126

    def on_test_epoch_end(self):
        if self.global_rank == 0:
            self.log("test_f1", self.f1.score(self.predictions), sync_dist=True)  # dt: DT126
