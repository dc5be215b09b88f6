import jax

jax.distributed.initialize(local_device_ids=[0])
print(jax.local_devices())
