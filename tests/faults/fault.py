"""A fault: the case of docs/semantics.md it belongs to, how it is done, and what has to follow."""

from dataclasses import dataclass, field
from typing import Callable, Optional

import effects
from scenario import JOINING, PHASES

GROUP_PHASES = tuple(phase for phase in PHASES if phase not in JOINING)


async def nothing(_run):
    pass


@dataclass(frozen=True)
class Fault:
    """Of a fault that is not done at one moment the effect is all there is."""

    name: str
    case: str  # the words of the table of cases
    effect: Callable
    inject: Optional[Callable]  # (run) -> when
    heal: Optional[Callable] = None
    prepare: Callable = nothing
    lasts_s: Optional[Callable] = None  # (times, dice) -> from the fault to its end
    code: str = "rank_lost"
    cause: Optional[tuple] = None
    least_s: Callable = lambda times: 0.0
    bound_s: Callable = lambda times: 0.0
    promise: str = ""  # the bound, in words
    victim_dies: bool = False
    victim_code: str = "session_expired"
    writes_arrive: bool = False  # the server hears the victim, who hears nothing
    replies_arrive: bool = False  # the victim may hear the server, who hears nothing
    victim_waits: bool = True  # is in the call of its phase, too
    via: str = ""  # "proxy" or "network": what is between the victim and the server
    hosted: bool = False  # a rank embeds the server
    only: str = ""  # "tls": in clear nobody would see it; "clear": with TLS it is no other one
    wrap_ms: int = 0
    wrap_of: tuple = ()
    phases: tuple = PHASES
    needs: tuple = ()
    wait_s: Callable = field(default=lambda times: 90.0)
    times: Callable = field(default=lambda times: times)  # those of its runs, of those of all


CLOSED = {"cause": ("closed",), "least_s": lambda t: t.grace - 0.05,
          "bound_s": lambda t: t.grace + t.slack, "promise": "G + e"}
SILENT = {"cause": ("heartbeat",), "least_s": effects.least_of_silence,
          "bound_s": lambda t: t.session + t.slack, "promise": "S + e"}
# It speaks until it has heard nothing for three heartbeats.
STILL_HEARD = {**SILENT, "bound_s": lambda t: t.session + t.slack + 3.5 * t.heartbeat,
               "promise": "S + e after its last byte, which may come 3.5 heartbeats later"}
LONG = {"lasts_s": lambda t, dice: (t.session + t.slack + 3.5 * t.heartbeat
                                    + dice.uniform(0.2, 1.5))}
# Its lease runs from the last heartbeat that was answered, and to be back takes up to 2 s.
SHORT = {"lasts_s": lambda t, dice: dice.uniform(
    0.5, max(1.0, 0.8 * t.session - 2.2 - t.heartbeat)), "bound_s": lambda t: 2.0,
         "promise": "2 s"}
