"""NCCL's own view of a job: the status that its RAS subsystem prints, as text or as JSON, and the verdict on it.

Formats: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/ras.html
"""

from dtdebug.recorded.nccl_ras.read_status import is_status, read_status
from dtdebug.recorded.nccl_ras.status import RasError, Status
from dtdebug.recorded.nccl_ras.verdict import verdict_of

__all__ = ["RasError", "Status", "is_status", "read_status", "verdict_of"]
