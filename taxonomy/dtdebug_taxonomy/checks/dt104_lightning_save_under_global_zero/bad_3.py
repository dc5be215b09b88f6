import lightning as L


class Model(L.LightningModule):
    def on_validation_epoch_end(self):
        if not self.trainer.is_global_zero:
            return
        scores = self.all_gather(self.scores)  # dt: DT104
        self.trainer.strategy.barrier()  # dt: DT104
        print(scores)


def main():
    fabric = L.Fabric(accelerator="cuda", devices=2)
    fabric.launch()
    if fabric.global_rank == 0:
        fabric.save("state.ckpt", state)  # dt: DT104


main()
