"""Record pipeline parallelism.

Consecutive layers on each rank. Prefill runs PyTorch's GPipe schedule with as many microbatches as stages; decode keeps
as many in flight.
"""

from collectors.torchrun.options import command as workload

command = workload("pp", __doc__, divides={"layers": 1, "batch": 1})
