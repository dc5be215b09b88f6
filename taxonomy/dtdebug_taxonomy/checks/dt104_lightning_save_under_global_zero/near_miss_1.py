import lightning
from mylab import Trainer

trainer = Trainer(out="runs")
if trainer.rank == 0:
    trainer.save_checkpoint("last.pt")
    model.save("model.h5")
