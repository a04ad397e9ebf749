"""Record decode context parallelism.

Keys and values of every sequence are split by position while decoding; partial attention is merged by log-sum-exp.
"""

from collectors.torchrun.options import command as workload

command = workload("dcp", __doc__, divides={"context": 1})
