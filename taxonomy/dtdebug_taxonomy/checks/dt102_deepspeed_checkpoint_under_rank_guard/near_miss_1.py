# deepspeed is another program's
from utils import Checkpointer

checkpointer = Checkpointer("out")
if rank == 0:
    checkpointer.save_checkpoint(model)
    self.save_checkpoint("out")
    trainer.save_checkpoint("out")
