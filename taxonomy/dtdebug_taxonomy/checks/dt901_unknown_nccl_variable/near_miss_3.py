import ray


@ray.remote
class Worker:
    """Ray's own collectives read whether to use several streams."""


environment = {"env_vars": {"NCCL_USE_MULTISTREAM": "False"}}
worker = Worker.options(runtime_env=environment).remote()
