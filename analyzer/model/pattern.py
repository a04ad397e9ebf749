"""One library's names for one sort of kernel."""

from dataclasses import dataclass
from enum import IntEnum

from analyzer.model.kind import Kind


class Breadth(IntEnum):
    """How much a pattern may claim. Narrow patterns are asked first, so that families need no exceptions."""

    NAMED = 0
    FAMILY = 1
    CATCH_ALL = 2


class Blend(IntEnum):
    """Whether a kernel does the work of two classes at once."""

    NONE = 0
    FUSED = 1
    OVERLAPPED = 2


@dataclass(frozen=True, slots=True)
class Pattern:
    """Names that mean one sort of work.

    Attributes:
        match: regular expression, searched anywhere in the demangled or mangled name.
        kind: the term its time belongs to; SYNC for device entries that only wait.
        subclass: `all_reduce`, `gemm`, `attention`, `kv_write`, …; one word for one thing over all libraries.
        examples: real names, each of which this pattern and no earlier one claims (tested).
        breadth: patterns are asked NAMED first, CATCH_ALL last.
        blend: FUSED for communication that also computes, OVERLAPPED for compute that also communicates.
    """

    match: str
    kind: Kind
    subclass: str
    examples: tuple[str, ...]
    breadth: Breadth = Breadth.FAMILY
    blend: Blend = Blend.NONE
