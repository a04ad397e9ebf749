"""torchrun, which leaves what became of each rank in a file.

    python -m collectors.torchrun.launch REPORT TORCHRUN-ARGUMENT…

REPORT is written when ranks fail: a JSON list of {"rank", "exitcode", "message", "time_ns"}; time_ns is null where the
rank did not live to leave its own error (`_worker.py`).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from torch.distributed import run
from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

OWN_TIME = "time_ns"  # of an error, in the file that a rank leaves beside what torchrun wants there
ORPHAN_CHECK_S = 1.0
SIGNALLED = 128  # added to a signal's number in an exit code, as shells do


def when_orphaned(act: Callable[[], None]) -> None:
    """Watch, beside what this process does, for the end of its parent; then do this. A killed parent tells nobody."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(ORPHAN_CHECK_S)
        act()

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Run torchrun; exit code 1 with a report, or 128 + signal."""
    report, *arguments = sys.argv[1:]
    when_orphaned(partial(os.kill, os.getpid(), signal.SIGTERM))
    try:
        run.run(run.parse_args(arguments))
    except ChildFailedError as failed:
        ranks = [
            {
                "rank": rank,
                "exitcode": end.exitcode,
                "message": end.message,
                "time_ns": end.error_file_data.get(OWN_TIME),
            }
            for rank, end in failed.failures.items()
        ]
        Path(report).write_text(json.dumps(ranks), encoding="utf-8")
        sys.exit(1)
    except SignalException as stopped:
        sys.exit(SIGNALLED + int(stopped.sigval))


if __name__ == "__main__":
    main()
