"""Pages of comparisons and sweeps, honest and hostile, as text."""

from dataclasses import replace

from drawn_reports import HOSTILE
from made_reports import finding, rank, report, step

from analyzer.compare.comparison import compare
from analyzer.render.compare import html as compare_html
from analyzer.render.sweep import html as sweep_html
from analyzer.sweep.optimum import Objective
from analyzer.sweep.point import Point, PointSeries
from analyzer.sweep.sweep import SweepRequest, sweep


def comparison_page():
    before = [report(f"before/{run}") for run in range(3)]
    after = [report(f"after/{run}", steps=[step(communication=3.0)]) for run in range(3)]
    return compare_html.render(compare(before, after))


def hostile_comparison():
    steps = [replace(step(), kind=HOSTILE)]
    ranks = [rank(subclasses={HOSTILE: 5_000_000})]
    name = replace(finding(), name=HOSTILE, message=HOSTILE)
    made = [report(f"{at}{HOSTILE}", steps=steps, ranks=ranks, findings=rows) for at, rows in ((0, ()), (1, (name,)))]
    return compare_html.render(compare(made[:1], made[1:]))


def sweep_page():
    terms = {1: (100e6, 0.0), 2: (50e6, 10e6), 4: (25e6, 25e6), 8: (12.5e6, 50e6)}
    points = tuple(
        Point(
            degree, (sum(parts),), dict(zip(("compute", "communication"), parts, strict=True), movement=0.0, sync=0.0)
        )
        for degree, parts in terms.items()
    )
    return sweep_html.render((sweep(PointSeries("", points, "measured.csv"), SweepRequest("tp", Objective.LATENCY)),))


def hostile_sweep():
    points = tuple(Point(at, (1e6 * at,), name=f"{at}{HOSTILE}") for at in (1, 2, 3))
    return sweep_html.render(
        (sweep(PointSeries(HOSTILE, points, HOSTILE, HOSTILE, ordered=False), SweepRequest(HOSTILE)),)
    )
