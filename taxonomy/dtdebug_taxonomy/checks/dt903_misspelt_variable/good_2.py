import os

local_rank = int(os.environ["LOCAL_RANK"])
node_rank = int(os.environ.get("NODE_RANK", os.environ.get("GROUP_RANK", 0)))
os.environ["HIP_VISIBLE_DEVICES"] = os.environ["ROCR_VISIBLE_DEVICES"]
os.environ["ASCEND_RT_VISIBLE_DEVICES"] = "0"
