"""Faults of the network: by the proxy, and between namespaces."""

import effects
import member_effects
from fault import CLOSED, LONG, SHORT, SILENT, STILL_HEARD, Fault
from processes import Violation


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


async def flip(run):
    """One bit of what passes next, of a record's header or of what it holds."""
    direction = run.dice.choice(["up", "down"])
    return await run.proxy.obey(f"flip {direction} {run.dice.randrange(8 * 200)}")


async def another_connection(run):
    """What was changed on the path is not taken: its connection ends."""
    before = await run.proxy.accepted_count()
    await effects.unnoticed(run)
    if await run.proxy.accepted_count() == before:
        raise Violation("the connection has gone on")


async def delay(run):
    return await run.proxy.obey(f"delay {run.dice.randint(50, 400)}")


PASS = proxy("pass")
# What is lost comes never, which is not so with TCP: the connection is silent until that is found
# after 3 heartbeats, or the wait for a hello is over after 2 s; then there is a little backoff.
LOSING = {**SHORT, "via": "proxy", "bound_s": lambda t: max(2.0, 3.5 * t.heartbeat) + 0.3,
          "promise": "3.5 heartbeats or 2 s, and a backoff"}
BACK = {"via": "proxy", "bound_s": lambda t: 2.0, "promise": "2 s"}
PROXIED = [
    Fault("half_open_long", "half-open TCP; its host dies silently", effects.lost,
          proxy("dead both"), PASS, via="proxy", **SILENT, **LONG),
    Fault("held_short", "cut off for less than 0.8 S: all arrives when it is over",
          effects.unnoticed, proxy("hold"), PASS, via="proxy", **SHORT),
    Fault("half_open_short", "cut off for less than 0.8 S", effects.unnoticed, proxy("dead both"),
          PASS, **LOSING),
    Fault("dead_up_long", "one direction dead, to the server", effects.lost, proxy("dead up"),
          PASS, via="proxy", replies_arrive=True, **SILENT, **LONG),
    Fault("dead_up_short", "one direction dead, to the server", effects.unnoticed,
          proxy("dead up"), PASS, **LOSING),
    Fault("dead_down_short", "one direction dead, from the server", effects.unnoticed,
          proxy("dead down"), PASS, **LOSING),
    Fault("dead_down_long", "one direction dead, from the server: `suspended`",
          member_effects.heard_but_deaf, proxy("dead down"), PASS, via="proxy",
          promise="0.8 S + e", **LONG),
    Fault("late_reply", "a client has timed out, the reply comes late",
          member_effects.replies_come_late, proxy("delay 450"), PASS, via="proxy",
          promise="its deadline + e"),
    Fault("reset_away", "reset, and not let in again", effects.lost, refuse_and("reset"), PASS,
          via="proxy", lasts_s=lambda t, dice: t.grace + t.slack + dice.uniform(0.2, 1.0),
          **CLOSED),
    Fault("reset", "reset, and back at once", effects.unnoticed, proxy("reset"), PASS, **BACK),
    Fault("cut_in_mid_frame", "cut in the middle of a frame, and back at once",
          effects.unnoticed, cut_in_mid_frame, PASS, lasts_s=lambda t, dice: 3 * t.heartbeat,
          **BACK),
    # Where it makes a record longer than it is, the connection is silent.
    Fault("bit_flip", "a bit is flipped on the path, by TLS", another_connection, flip, PASS,
          only="tls", **{**LOSING, "lasts_s": lambda t, dice: 2.5 * t.heartbeat}),
    Fault("delay", "each direction takes 50 to 400 ms longer", effects.unnoticed, delay, PASS,
          via="proxy", lasts_s=lambda t, dice: dice.uniform(1, 3), bound_s=lambda t: 3.0,
          promise="2 s and the delay: 3 s"),
    Fault("trickle", "single bytes, one each ms", effects.unnoticed, proxy("trickle 1"), PASS,
          lasts_s=lambda t, dice: dice.uniform(1, 3), **BACK),
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
              blackhole(end, "add"), blackhole(end, "del"), writes_arrive=end == 0,
              replies_arrive=end == 1, **NETWORK, **(STILL_HEARD if end == 0 else SILENT), **LONG),
        Fault(f"blackhole_{where}_short", f"cut off for less than 0.8 S: {words}",
              effects.unnoticed, blackhole(end, "add"), blackhole(end, "del"), **NETWORK, **SHORT),
    ]
