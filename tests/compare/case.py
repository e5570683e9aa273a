"""What a case is: something that happens to a store, and a function for each store that does it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from redis_stage import RedisStage
from stages import MusterStage, TcpStoreStage

STAGES = {"muster": MusterStage, "tcpstore": TcpStoreStage, "redis": RedisStage}


@dataclass(frozen=True)
class Case:
    """Each function takes a stage and returns an Observation; one that is missing: no such thing.

    `both` is for Muster and the TCPStore, whose ranks take the same commands.
    """

    name: str
    title: str
    both: Callable | None = None
    muster: Callable | None = None
    tcpstore: Callable | None = None
    redis: Callable | None = None
    alone: bool = False  # what is measured would suffer from other cases beside it
    options: dict = field(default_factory=dict)  # of all its functions

    def observers(self):
        """Store -> function."""
        chosen = {"muster": self.muster or self.both, "tcpstore": self.tcpstore or self.both,
                  "redis": self.redis}
        return {store: observer for store, observer in chosen.items() if observer}
