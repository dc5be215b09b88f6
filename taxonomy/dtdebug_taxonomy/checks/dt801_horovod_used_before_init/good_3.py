import horovod.torch as hvd

from utils import init_distributed

init_distributed("horovod")
print(hvd.rank())
