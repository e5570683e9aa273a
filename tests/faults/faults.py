"""The faults: the case of docs/semantics.md that each belongs to, how it is done, what follows."""

import asyncio
import os
import signal
import time
from dataclasses import dataclass, field
from typing import Callable, Optional

import effects
from scenario import JOINING, PHASES

GROUP_PHASES = tuple(phase for phase in PHASES if phase not in JOINING)


async def nothing(_run):
    pass


@dataclass(frozen=True)
class Fault:
    name: str
    case: str  # the words of the table of cases
    effect: Callable
    inject: Callable  # (run) -> when
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
    victim_waits: bool = True  # is in the call of its phase, too
    extra_s: float = 0.0
    via: str = ""  # "proxy" or "network": what is between the victim and the server
    wrap_ms: int = 0
    wrap_of: tuple = ()
    phases: tuple = PHASES
    needs: tuple = ()
    wait_s: Callable = field(default=lambda times: 90.0)


# Signals.

async def kill_victim(run):
    return run.victim.signal(signal.SIGKILL)


async def stop_victim(run):
    run.lenient.add(run.victim)
    return run.victim.signal(signal.SIGSTOP)


async def go_on_victim(run):
    return run.victim.signal(signal.SIGCONT)


async def fork_and_kill(run):
    run.place.children.append((await run.victim.call("fork"))["child"])
    return run.victim.signal(signal.SIGKILL)


CLOSED = {"cause": ("closed",), "least_s": lambda t: t.grace - 0.05,
          "bound_s": lambda t: t.grace + t.slack, "promise": "G + e"}
SILENT = {"cause": ("heartbeat",), "least_s": effects.least_of_silence,
          "bound_s": lambda t: t.session + t.slack, "promise": "S + e"}
LONG = {"lasts_s": lambda t, dice: t.session + t.slack + dice.uniform(0.2, 1.5)}
# Its lease runs from the last heartbeat that was answered, and to be back takes up to 2 s.
SHORT = {"lasts_s": lambda t, dice: dice.uniform(
    0.5, max(1.0, 0.8 * t.session - 2.2 - t.heartbeat)), "promise": "2 s"}

SIGNALS = [
    Fault("kill", "a rank is killed", effects.lost, kill_victim, victim_dies=True, **CLOSED),
    Fault("kill_child_holds", "a rank is killed, its child holds the socket", effects.lost,
          fork_and_kill, victim_dies=True, **SILENT),
    Fault("stop_long", "stopped past S, resumed", effects.lost, stop_victim, go_on_victim,
          **SILENT, **LONG),
    Fault("stop_short", "stopped for less than 0.8 S", effects.unnoticed, stop_victim,
          go_on_victim, **SHORT),
]


# The proxy.

def proxy(*commands):
    async def obey(run):
        for command in commands:
            at = await run.proxy.obey(command)
        return at
    return obey


def refuse_and(command):
    """No connection comes through until it is healed."""
    async def obey(run):
        await run.proxy.obey("refuse")
        return await run.proxy.obey(command)
    return obey


async def cut_in_mid_frame(run):
    direction = run.dice.choice(["up", "down"])
    return await run.proxy.obey(f"cut {direction} {run.dice.randint(1, 15)}")


async def delay(run):
    return await run.proxy.obey(f"delay {run.dice.randint(50, 400)}")


PASS = proxy("pass")
PROXIED = [
    Fault("half_open_long", "half-open TCP; its host dies silently", effects.lost,
          proxy("dead both"), PASS, via="proxy", **SILENT, **LONG),
    Fault("half_open_short", "cut off for less than 0.8 S", effects.unnoticed, proxy("dead both"),
          PASS, via="proxy", **SHORT),
    Fault("dead_up_long", "one direction dead, to the server", effects.lost, proxy("dead up"),
          PASS, via="proxy", **SILENT, **LONG),
    Fault("dead_up_short", "one direction dead, to the server", effects.unnoticed,
          proxy("dead up"), PASS, via="proxy", **SHORT),
    Fault("dead_down_short", "one direction dead, from the server", effects.unnoticed,
          proxy("dead down"), PASS, via="proxy", **SHORT),
    Fault("reset_away", "reset, and not let in again", effects.lost, refuse_and("reset"), PASS,
          via="proxy", lasts_s=lambda t, dice: t.grace + t.slack + dice.uniform(0.2, 1.0),
          **CLOSED),
    Fault("reset", "reset, and back at once", effects.unnoticed, proxy("reset"), PASS,
          via="proxy", promise="2 s"),
    Fault("cut_in_mid_frame", "cut in the middle of a frame, and back at once",
          effects.unnoticed, cut_in_mid_frame, PASS, via="proxy",
          lasts_s=lambda t, dice: 3 * t.heartbeat, promise="2 s"),
    Fault("delay", "each direction takes 50 to 400 ms longer", effects.unnoticed, delay, PASS,
          via="proxy", lasts_s=lambda t, dice: dice.uniform(1, 3), extra_s=1.0,
          promise="2 s and the delay"),
    Fault("trickle", "single bytes, one each ms", effects.unnoticed, proxy("trickle 1"), PASS,
          via="proxy", lasts_s=lambda t, dice: dice.uniform(1, 3), promise="2 s"),
]


# Networks.

def link(state):
    async def change(run):
        return await run.namespaces.link(run.state.setdefault("end", run.dice.randrange(2)), state)
    return change


def blackhole(end, verb):
    async def change(run):
        return await run.namespaces.blackhole(end, verb)
    return change


NETWORK = {"via": "network", "needs": ("network",)}
NETWORKS = [
    Fault("link_down_long", "its host dies silently: the link is down", effects.lost,
          link("down"), link("up"), **NETWORK, **SILENT, **LONG),
    Fault("link_down_short", "cut off for less than 0.8 S: the link is down", effects.unnoticed,
          link("down"), link("up"), **NETWORK, **SHORT),
]
for where, end in (("server", 0), ("rank", 1)):
    words = f"a blackhole route at the {where}"
    NETWORKS += [
        Fault(f"blackhole_{where}_long", f"cut off for longer than S: {words}", effects.lost,
              blackhole(end, "add"), blackhole(end, "del"), writes_arrive=end == 0, **NETWORK,
              **SILENT, **LONG),
        Fault(f"blackhole_{where}_short", f"cut off for less than 0.8 S: {words}",
              effects.unnoticed, blackhole(end, "add"), blackhole(end, "del"), **NETWORK, **SHORT),
    ]

FAULTS = [*SIGNALS, *PROXIED, *NETWORKS]
