from os import environ

NUM_NODES = 2
GPUS = 8


class Job:
    def start(self, port):
        environ.update(
            MASTER_ADDR="127.0.0.1",  # dt: DT205
            MASTER_PORT=str(port),
            WORLD_SIZE=str(NUM_NODES * GPUS),
        )
