"""How wide the output is, and whether it may have colour."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from analyzer.cli.output import NARROWEST


def page(out: Path | None) -> tuple[int, bool]:
    """Columns and colour: those of the terminal, where the text goes to one."""
    terminal = out is None and sys.stdout.isatty()
    return (max(NARROWEST, shutil.get_terminal_size().columns), True) if terminal else (NARROWEST, False)
