"""Reports of drawn runs, one a mechanism, and of runs that no drawing can show: hostile names, many ranks."""

from dataclasses import replace
from functools import cache

import msgspec

import rules
from analyzer.diagnose.diagnose import diagnose
from analyzer.plugins import offers
from analyzer.schema.report import FindingEvidence, Report, Tool
from analyzer.sketch import sketch

DRAWINGS = {
    "tp": """
        layout  tp=2
        nodes   a b
        message 65536
        engine  vllm
        model   hidden_size=4096 num_hidden_layers=4
        rank 0 stream 7   GGGGBB..GGGGBB..GGGGBB..GGGGBB..
        rank 0 host       ll......ll......ll......ll......
        rank 0 steps      DDDDDDDD|DDDDDDD|DDDDDDD|DDDDDDD
        rank 1 stream 7   ..GGBB....GGBB....GGBB....GGBB..
        rank 1 host       ll......ll......ll......ll......
        rank 1 steps      DDDDDDDD|DDDDDDD|DDDDDDD|DDDDDDD
    """,
    "ep": """
        layout  ep=4
        engine  sglang
        rank 0 stream 7   TTXXXMMYYYTTXXXMMYYY
        rank 0 steps      DDDDDDDDDD|DDDDDDDDD
        rank 1 stream 7   TTXXXMMYYYTTXXXMMYYY
        rank 1 steps      DDDDDDDDDD|DDDDDDDDD
        rank 2 stream 7   TTXXMMMYYYTTXXMMMYYY
        rank 2 steps      DDDDDDDDDD|DDDDDDDDD
        rank 3 stream 7   TTXXXMMYYYTTXXXMMYYY
        rank 3 steps      DDDDDDDDDD|DDDDDDDDD
    """,
    "pp": """
        layout  pp=2
        rank 0 stream 7   GGGG..S.....GGGG..S.....
        rank 0 steps      DDDDDDDDDDDD|DDDDDDDDDDD
        rank 1 stream 7   ......SGGGG.......SGGGG.
        rank 1 steps      DDDDDDDDDDDD|DDDDDDDDDDD
    """,
    "launch_bound": """
        rank 0 stream 7   .G...G...E...U...G...K...H..
        rank 0 host       l...l...l...l...l...l...SSSS
        rank 0 steps      PPPPPPPPPPPPPP|DDDDDDDDDDDDD
    """,
    "nothing_wrong": """
        layout  tp=1
        world   1
        rank 0 stream 7   GGGGGGGGTTTTGGGGGGGGGGGGTTTTGGGG
    """,
}
HOSTILE = "<img src=x onerror=alert(1)></script>`|*{{7*7}}\n::error::&\"'\x1b[2J]]>@team "


@cache
def report_of(name):
    """The diagnosis of one drawing, by every rule."""
    return replace(
        diagnose(sketch.read(DRAWINGS[name]), offers(rules, "check").values()), tool=Tool("shardscope", "0.0")
    )


@cache
def hostile_report():
    """A report in which every free string, a kernel's name among them, carries what would act if it were let."""
    found = report_of("tp")
    plain = msgspec.to_builtins(found)
    chosen = {"verdict", "severity", "basis", "outcome", "bound", "band", "sure"}

    def poisoned(value, key="", *, top=False):
        if isinstance(value, str):
            return value if key in chosen and not top else f"{HOSTILE}{value}"
        if isinstance(value, dict):
            free = key in {"subclasses", "terms", "left_out", "layout_evidence", "settings", "versions"}
            return {f"{HOSTILE if free else ''}{name}": poisoned(each, name) for name, each in value.items()}
        return [poisoned(each, key) for each in value] if isinstance(value, list) else value

    made = {name: poisoned(each, name, top=name == "verdict") for name, each in plain.items()}
    return with_evidence(msgspec.convert(made, Report))


def with_evidence(report):
    """The same report, each finding with a span, a drawing and a kernel of hostile name."""
    drawing = "rank 0   GGGGAAAA....\nrank 1   ..GGAAAA...."
    evidence = FindingEvidence([0, 1], [[10_000, 90_000]], [f"void {HOSTILE}kernel<float>(int)"])
    return replace(report, findings=[replace(row, evidence=evidence, drawing=drawing) for row in report.findings])


def many_ranks(n, findings=0, name="a_kernel"):
    """A report of n ranks and as many findings, each with evidence on every rank and many long names."""
    found = report_of("tp")
    first = found.breakdown.per_rank[0]
    rows = [
        replace(first, rank=rank, compute_ns=first.compute_ns - rank, sync_ns=first.sync_ns + rank) for rank in range(n)
    ]
    drawing = "\n".join(f"rank {rank:<4}{'GGGGAAAA' * 8}" for rank in range(n))
    evidence = FindingEvidence(list(range(0, n, 2)), [[0, 1_000_000]] * 5, [f"{name}<{at}>" for at in range(40)])
    one = replace(found.findings[0], evidence=evidence, drawing=drawing)
    return replace(
        found,
        run=replace(found.run, ranks=list(range(n)), world_size=n),
        breakdown=replace(found.breakdown, per_rank=rows),
        collectives=[replace(found.collectives[0], group=list(range(n)), count=at) for at in range(min(4 * n, 400))],
        findings=[*found.findings, *(replace(one, cost_ns=at) for at in range(findings))],
    )
