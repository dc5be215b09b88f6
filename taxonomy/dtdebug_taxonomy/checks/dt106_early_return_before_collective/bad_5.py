import requests
import torch.distributed as dist


class Trainer:
    def push_weights(self, accelerator, path):
        if accelerator.is_main_process:
            answer = requests.post(self.url, json={"path": path}, timeout=30)
            if answer.status_code != 200:
                try:
                    self.log.warning("failed: %s", answer.status_code)
                finally:
                    print(answer.text)
                return  # dt: DT106
            self.log.info("sent")
        if dist.is_initialized():
            dist.barrier()
