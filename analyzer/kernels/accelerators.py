"""Entries of other accelerators' traces: MTIA's command processor, Cambricon's operators."""

from analyzer.model.kind import Kind
from analyzer.model.pattern import Breadth, Pattern

PATTERNS = (
    Pattern(
        # MTIA runs a compiled (part of a) model as one entry; `merge` and `remote` are parts of a recommendation model.
        r"^(?:pe_exe|merge|remote)$",
        Kind.COMPUTE,
        "program",
        ("pe_exe", "merge", "remote"),
        Breadth.NAMED,
    ),
    Pattern(
        r"^event_wait$",
        Kind.SYNC,
        "event_wait",
        ("event_wait",),
        Breadth.NAMED,
    ),
    Pattern(
        r"^event_record$",
        Kind.SYNC,
        "marker",
        ("event_record",),
        Breadth.NAMED,
    ),
    Pattern(
        r"^MLU(?:Op|Block|Union\d?)?(?:Tensor)?(?:Element|Kernel\w*(?:Add|Mul|Activ))",
        Kind.COMPUTE,
        "elementwise",
        ("MLUOpTensorElementParam110",),
        Breadth.NAMED,
    ),
)
