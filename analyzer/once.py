"""Make a measure once a run, forget it with the run."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from analyzer.model.run import Run

T = TypeVar("T")


def once(measure: Callable[[Run], T]) -> Callable[[Run], T]:
    """The same function, its result kept as long as the run lives."""
    made: WeakKeyDictionary[Run, T] = WeakKeyDictionary()

    @wraps(measure)
    def kept(run: Run) -> T:
        if run not in made:
            made[run] = measure(run)
        return made[run]

    return kept
