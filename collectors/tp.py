"""Record tensor parallelism.

A small transformer whose heads, feed-forward columns and vocabulary are split by PyTorch's tensor-parallel API does
prefill and decode; one run directory for each degree.
"""

from collectors.torchrun.options import command as workload

command = workload("tp", __doc__, divides={"heads": 1, "kv_heads": 1, "ffn": 1, "vocab": 1})
