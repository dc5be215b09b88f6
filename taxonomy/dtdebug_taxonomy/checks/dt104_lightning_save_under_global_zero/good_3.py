import lightning as L

fabric = L.Fabric(devices=2)
if fabric.world_size > 1:
    fabric.barrier()
if fabric.is_global_zero:
    prepare()
    fabric.barrier()
else:
    fabric.barrier()
