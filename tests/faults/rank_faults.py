"""Faults of one rank: it dies, stands still, leaves, restarts, comes twice, is late."""

import os
import signal
import time

import effects
import member_effects
from fault import CLOSED, GROUP_PHASES, LONG, SHORT, SILENT, Fault
from processes import Violation


async def kill_victim(run):
    """Waits until the process is gone, as a supervisor does. Until then the server refuses a
    replacement: rank_in_use."""
    at = run.victim.signal(signal.SIGKILL)
    await run.victim.gone()
    return at


async def stop_victim(run):
    run.lenient.add(run.victim)
    return run.victim.signal(signal.SIGSTOP)


async def go_on_victim(run):
    return run.victim.signal(signal.SIGCONT)


async def fork_child(run):
    at = time.monotonic()
    result = await run.victim.call("fork")
    run.place.children.append(result["child"])
    if result["in_child"] != "forked":
        raise Violation(f"a call in the child gave {result['in_child']}")
    return at


async def kill_child(run):
    at = time.monotonic()
    os.kill(run.place.children[-1], signal.SIGKILL)
    return at


async def fork_and_kill(run):
    await fork_child(run)
    return await kill_victim(run)


SIGNALS = [
    Fault("kill", "a rank is killed", effects.lost, kill_victim, victim_dies=True, **CLOSED),
    Fault("kill_child_holds", "a rank is killed, its child holds the socket", effects.lost,
          fork_and_kill, victim_dies=True, **SILENT),
    Fault("forks", "a process forks", effects.unnoticed, fork_child, kill_child, **SHORT),
    # What it is sent is in its socket when it goes on.
    Fault("stop_long", "stopped past S, resumed", effects.lost, stop_victim, go_on_victim,
          replies_arrive=True, **SILENT, **LONG),
    Fault("stop_short", "stopped for less than 0.8 S", effects.unnoticed, stop_victim,
          go_on_victim, **SHORT),
]

MEMBERS = [
    Fault("report_dead", "a supervisor declares a living process dead", member_effects.reported,
          None, member_effects.go_on_if_stopped, cause=("reported",), bound_s=lambda t: 0.5,
          promise="0.5 s", victim_code="fenced",
          lasts_s=lambda t, dice: dice.uniform(0.6, 0.5 * t.session)),
    Fault("restart", "a rank restarts under the same rank", member_effects.restarts, None,
          victim_dies=True, cause=("restarted", "closed"), bound_s=lambda t: 0.5,
          promise="0.5 s of its join"),
    Fault("two_claim", "two live processes claim one rank", member_effects.second_claims,
          effects.now, promise="at once", bound_s=lambda t: 0.5, code="rank_in_use",
          phases=("during_join", *GROUP_PHASES)),
    Fault("leave", "a rank leaves or closes its group", member_effects.leaves, None,
          victim_dies=True, victim_waits=False, code="rank_left", bound_s=lambda t: 0.5,
          promise="at once"),
    Fault("slow", "a slow rank that still heartbeats", member_effects.is_slow, None,
          victim_waits=False, promise="its deadline + e",
          # With default times so long that the server's log tells of them twice.
          wait_s=lambda t: 0.7 * t.session if t.session < 10 else 21.5,
          phases=("during_join", "barrier", "all_gather", "recv")),
]
