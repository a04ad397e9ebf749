"""JSON numbers, and strings that hold numbers, to int64 without loss."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation

import numpy as np

from analyzer.ingest.kineto.decode import MISSING, WHOLE_NS_BELOW
from analyzer.ingest.kineto.raw import WORDS_FROM
from analyzer.stats.arrays import Integers

UNUSABLE = MISSING + 1
"""A time that is in the file, but is no number or beyond all range."""

LATEST_US = 2**52  # the year 2112; leaves room for the clock base and a duration in int64 nanoseconds

_DECIMAL = re.compile(r"-?\d{1,20}")
_STREAM = re.compile(r"stream (-?\d{1,18})")  # thread ids of device work in 2021
_UINT64 = 2**64


def nanoseconds(column: Sequence[object]) -> tuple[Integers, int]:
    """Microseconds to nanoseconds.

    Args:
        column: n floats, strings, Decimals or None.

    Returns:
        int64[n], MISSING or UNUSABLE where there is no time; and how many could not be exact, being floats so large
        that they hold no whole nanoseconds.
    """
    n = len(column)
    if set(map(type, column)) != {float}:
        return np.fromiter(map(_nanosecond, column), np.int64, n), 0
    us = np.fromiter(column, np.float64, n)
    absent = np.isnan(us)
    beyond = np.abs(us) > LATEST_US
    us[absent | beyond] = 0
    # Whole and fraction apart: rint(us * 1000) is a nanosecond off in 0.6 % of values between 2**42 and 2**43 µs.
    whole = np.floor(us)
    ns = whole.astype(np.int64) * 1000 + np.rint((us - whole) * 1000).astype(np.int64)
    ns[absent] = MISSING
    ns[beyond] = UNUSABLE
    return ns, int(np.count_nonzero((np.abs(us) >= WHOLE_NS_BELOW) & (us != whole)))


def integers(column: Sequence[object]) -> Integers:
    """int64[n], MISSING where there is no integer."""
    if set(map(type, column)) == {int}:
        try:
            return np.fromiter(column, np.int64, len(column))
        except OverflowError:
            pass
    return np.fromiter(map(integer, column), np.int64, len(column))


def integer(value: object) -> int:
    """The integer, MISSING where there is none.

    A string that is not decimal (ROCm's stream `0x0`, a pointer) is no integer: it is never guessed into one.
    Unsigned 64-bit integers become what they are as signed ones: a stream of 2**64 - 1 is -1, none.
    """
    if isinstance(value, str):
        value = value.strip()
        return _in_range(int(value)) if _DECIMAL.fullmatch(value) else MISSING
    if isinstance(value, float):
        return _in_range(int(value)) if value.is_integer() else MISSING
    return _in_range(value) if isinstance(value, int) and not isinstance(value, bool) else MISSING


def identifiers(column: Sequence[object], words: Mapping[object, int]) -> Integers:
    """int64[n]: process or thread ids.

    Args:
        column: integers and strings, of which some are numbers (`"4093687616"`), some are `stream 7`, and some words.
        words: gives a word its number, counted from WORDS_FROM downwards.
    """
    if set(map(type, column)) == {int}:
        try:
            return np.fromiter(column, np.int64, len(column))
        except OverflowError:
            pass
    return np.fromiter((identifier(value, words) for value in column), np.int64, len(column))


def identifier(value: object, words: Mapping[object, int]) -> int:
    """One process or thread id."""
    if isinstance(value, str) and (stream := _STREAM.fullmatch(value.strip())):
        return int(stream[1])
    number = integer(value)
    if number == MISSING and value not in (MISSING, None):
        return WORDS_FROM - words[str(value)]
    return number


def _in_range(value: int) -> int:
    if -(2**63) <= value < 2**63:
        return value
    return value - _UINT64 if 0 <= value < _UINT64 else MISSING


def _nanosecond(value: object) -> int:
    if isinstance(value, str):
        try:
            value = Decimal(value.strip())
        except InvalidOperation:
            return UNUSABLE
    if isinstance(value, Decimal):
        if not value.is_finite() or abs(value) > LATEST_US:
            return UNUSABLE
        return int((value * 1000).to_integral_value())
    if not isinstance(value, float) or math.isnan(value):
        return MISSING
    if abs(value) > LATEST_US:
        return UNUSABLE
    whole = math.floor(value)
    return whole * 1000 + round((value - whole) * 1000)
