"""A case: what an attacker does, how large, and what must hold beside what holds in every case."""

from dataclasses import dataclass, field
from typing import Callable, Optional

MIB = 1 << 20


@dataclass(frozen=True)
class Figure:
    """What was seen, and whether that is as it must be. Times are judged only where they are asked
    for: counts are the same on every machine."""

    name: str
    seen: str
    must: str
    holds: bool
    is_time: bool = False
    is_told: bool = True  # in the table, also where it holds
    is_missed: bool = False  # a target, which is better than what must hold

    def __str__(self):
        return f"{self.name} {self.seen}"


def at_most(name, seen, bound, unit="", is_time=False):
    return Figure(name, f"{seen:.4g}{unit}", f"<= {bound:.4g}{unit}", seen <= bound, is_time)


def at_least(name, seen, bound, unit=""):
    return Figure(name, f"{seen:.4g}{unit}", f">= {bound:.4g}{unit}", seen >= bound)


def exactly(name, seen, wanted):
    return Figure(name, f"{seen}", f"{wanted}", seen == wanted)


@dataclass(frozen=True)
class Case:
    """`arguments` are the attack's; `small` replaces some of them where only counts are looked at.
    `counted` gives the figures that only this case has: (run) -> figures."""

    name: str
    what: str
    before: str  # what was seen before anything was done about it
    attack: str
    arguments: dict = field(default_factory=dict)
    small: dict = field(default_factory=dict)
    counted: Optional[Callable] = None
    memory_bytes_max: int = 64 * MIB
    flags: tuple = ()
    addresses: int = 1  # of the attack
    is_at_tcpstore: bool = False  # at the port for programs that use it
    is_full: bool = False  # before any bystander comes; an operator works beside the attack
    is_by_tls: bool = False  # the attacker has an identity of its own
    is_sampled: bool = False  # of what the server counts as used, the most is noted
    window_s: float = 4.0
