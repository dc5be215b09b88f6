import lightning.pytorch as pl


class Model(pl.LightningModule):
    def on_validation_epoch_end(self):
        self.log_dict({"f1": self.f1.score(self.predictions)}, sync_dist=True)
        metrics = {"seconds": self.seconds}
        if self.trainer.is_global_zero:
            metrics["parameters"] = self.count()
        self.log_dict(metrics, rank_zero_only=True)
        if self.trainer.is_global_zero:
            print(metrics)
