"""The four terms of time, nearest first, and the causes of the last one."""

from enum import Enum, IntEnum


class Kind(IntEnum):
    """What an instant is spent on. The order is the order of precedence: the nearest class wins an instant."""

    COMPUTE = 0
    COMMUNICATION = 1
    MOVEMENT = 2
    SYNC = 3

    @property
    def label(self) -> str:
        """Lower-case name, as in reports."""
        return self.name.lower()


class Cause(str, Enum):
    """Why the device did nothing."""

    PEER_WAIT = "peer_wait"
    HOST_SYNC = "host_sync"
    HOST_LAUNCH = "host_launch"
    STREAM_WAIT = "stream_wait"
    QUEUE = "queue"
    UNRECORDED = "unrecorded"
    UNKNOWN = "unknown"
