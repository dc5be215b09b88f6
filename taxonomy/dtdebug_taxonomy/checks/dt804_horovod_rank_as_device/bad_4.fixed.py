import os

import horovod.tensorflow.keras as hk
import tensorflow as tf
import torch
from horovod.torch import init, rank

init()
torch.cuda.set_device(rank())  # dt: DT804
os.environ.setdefault("CUDA_VISIBLE_DEVICES", str(hk.local_rank()))  # dt: DT804
device = torch.device("cuda:%d" % hk.local_rank() if torch.cuda.is_available() else "cpu")  # dt: DT804
config = tf.compat.v1.ConfigProto()
config.gpu_options.visible_device_list = "{}".format(hk.local_rank())  # dt: DT804
model = torch.nn.Linear(1, 1).cuda(device=hk.local_rank())  # dt: DT804
with torch.cuda.device("cuda:" + str(hk.local_rank())):  # dt: DT804
    print(model)
