import json
from pathlib import Path

import horovod.torch as hvd
import lightning as L
from transformers import TrainerCallback


class Model(L.LightningModule):
    def on_train_epoch_end(self):
        with open("epoch.json", "w") as out:  # dt: DT605
            json.dump(self.current_epoch, out)


class Notes(L.Callback):
    def on_fit_end(self, trainer, module):
        Path("notes.txt").write_text("done")  # dt: DT605


class Log(TrainerCallback):
    def on_train_end(self, args, state, control, **kwargs):
        Path("log.json").write_text(json.dumps(state.log_history))  # dt: DT605


def finish(metrics):
    if hvd.rank() == 0:
        print(metrics)
    Path("metrics.json").write_text(json.dumps(metrics))  # dt: DT605
