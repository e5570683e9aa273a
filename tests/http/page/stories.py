"""Stories of a server's groups: each makes a world, and goes on by half a second when it is asked.

They are for tests, for pictures, and to be looked at: double.py STORY.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from world import World

CAUSES = ["closed", "closed", "closed", "heartbeat", "heartbeat", "reported", "restarted"]


def add_surroundings(world: World) -> None:
    """Sessions, keys and waits as a server has them that is in use."""
    size = sum(group.size for group in world.groups)
    world.sessions = {"connected": size, "away": 2}
    world.operations = 1840.0
    world.waits = [51200, 40210, 9120, 4080, 2210, 640, 122, 31, 12, 4, 1, 0]
    world.prefixes = [
        {"namespace": "", "prefix": "rendezvous/", "count": 4210, "bytes": 1_912_040},
        {"namespace": "", "prefix": "checkpoints/", "count": 88, "bytes": 902_144},
        {"namespace": "research", "prefix": "sweep-17/", "count": 1912, "bytes": 402_111},
        {"namespace": "", "prefix": "nccl/", "count": 64, "bytes": 8_192},
        {"namespace": "research", "prefix": "", "count": 3, "bytes": 120},
    ]


def go_on(world: World) -> None:
    """Half a second in which nothing special happens."""
    world.operations = max(0.0, world.operations + random.uniform(-80, 80))
    for index, count in enumerate([310, 240, 55, 20, 8, 2, 0, 0, 0, 0, 0, 0]):
        world.waits[index] += count


def past(world: World, count: int = 40, seed: int = 4) -> None:
    """Losses of the last hour."""
    draw = random.Random(seed)
    for age_s in sorted((draw.betavariate(1.2, 2.2) * 3500 for _ in range(count)), reverse=True):
        group = draw.choice(world.groups)
        what = draw.random()
        rank = draw.randrange(group.size)
        if what < 0.62:
            world.note(group, "rank_lost", age_s=age_s, ranks=[rank], cause=draw.choice(CAUSES))
            world.note(group, "regrouped", age_s=max(0, age_s - 4))
        elif what < 0.8:
            world.note(group, "round_failed", age_s=age_s, ranks=[rank], code="timed_out")
        elif what < 0.9:
            world.note(group, "join_timed_out", age_s=age_s, ranks=[rank], code="timed_out")
        else:
            world.note(group, "join_refused", age_s=age_s, ranks=[rank], code="rank_in_use")


def calm(world: World) -> Iterator[None]:
    """All work."""
    for index in range(12):
        group = world.add(f"trainer/pp{index}", [64, 128, 256][index % 3],
                          "research" if index % 4 == 3 else "")
        group.epoch, group.round = 1 + index % 3, 4000 + index
    add_surroundings(world)
    past(world, 6)
    while True:
        for group in world.groups:
            group.round += 1
        go_on(world)
        yield


def hang(world: World) -> Iterator[None]:
    """One rank of 1,024 does not come to a barrier; another group does not form."""
    for index in range(16):
        group = world.add(f"trainer/tp{index}", 64, hosts="rack3-gpu")
        group.epoch, group.round = 2, 8800 + index
    world.add("trainer", 1024, hosts="rack3-gpu").wait([617], "all_gather_obj", 8812, 252)
    world.groups[-1].epoch = 7
    world.add("rollout", 96, "research", "infer").form([40, 41, 42, 43, 88], 74)
    world.add("eval", 32, "research", "infer").wait([3], "barrier", 12, 3)
    world.add("reward", 48, "research", "infer").form(range(20, 48), 4)
    world.add("weights", 128, hosts="rack3-gpu").idle()
    world.add("shards", 256, hosts="rack3-gpu").work(77)
    world.groups[-1].states[19] = "silent"
    world.groups[-1].states[20] = "away"
    add_surroundings(world)
    past(world)
    while True:
        for group in world.groups:
            if group.state == "working":
                group.round += 1
        go_on(world)
        yield


def failure(world: World) -> Iterator[None]:
    """Ranks of a host are lost and nobody regroups; another group regroups."""
    for index in range(10):
        world.add(f"trainer/tp{index}", 64).epoch = 2
    lost = list(range(24, 32))
    group = world.add("trainer", 512)
    group.epoch = 3
    group.fail(lost, "heartbeat", 95)
    world.note(group, "rank_lost", age_s=95, ranks=lost, cause="heartbeat", count=8)
    world.add("rollout", 96, "research").regroup([7, 9], 3)
    world.add("sweep", 16, "research").regroup([4], 41)
    world.use_limits(0.86)
    world.limits[0]["used"] = round(0.97 * world.limits[0]["max"])
    add_surroundings(world)
    past(world, 25, 9)
    world.known_for_s = 2300.0
    while True:
        go_on(world)
        yield


def many(world: World) -> Iterator[None]:
    """10,240 ranks in 100 groups, each with a barrier per second; a rank dies every second."""
    draw = random.Random(1)
    for index in range(100):
        group = world.add(f"job-{index:03}/trainer", 102 + (index < 40))
        group.epoch = 1
    add_surroundings(world)
    dead: list[int] = []
    turn = 0
    while True:
        turn += 1
        for index, group in enumerate(world.groups):
            if index in dead:
                continue
            group.round += (turn + index) % 2
            if group.state == "regrouping":
                group.work(group.round)
                group.epoch += 1
                world.note(group, "regrouped")
            elif (turn + index) % 5 == 0:
                late = draw.randrange(group.size)
                group.states = ["waiting"] * group.size
                group.states[late] = "live"
            else:
                group.states = ["live"] * group.size
        if turn % 2 == 0:
            if len(dead) > 3:
                group = world.groups[dead.pop(0)]
                group.regroup(group.ranks_in("lost"))
            index = draw.randrange(100)
            if index not in dead and world.groups[index].state != "regrouping":
                dead.append(index)
                group = world.groups[index]
                rank = draw.randrange(group.size)
                cause = draw.choice(CAUSES)
                group.fail([rank], cause)
                world.note(group, "rank_lost", ranks=[rank], cause=cause)
        go_on(world)
        yield


HOSTILE = ["<img src=x onerror=\"document.title='owned'\">", "</script><script>alert(1)</script>",
           "javascript:alert(1)", "\u05e9\u05dc\u05d5\u05dd/\u0645\u0631\u062d\u0628\u0627",
           "\u202egnp.exe", "a\u0000b\u001b[31mred\r\nSet-Cookie: x", "x" * 900,
           "#group=other&namespace=x", "%3Cb%3E%00", "\u2066\u2069\ufeff", " ", "",
           "\U0001f469\u200d\U0001f4bb \u6f22\u5b57 e\u0301", "__proto__", "constructor"]


def hostile(world: World) -> Iterator[None]:
    """Names, hosts and labels that want to be more than text."""
    for name in HOSTILE:
        group = world.add(name, 8, HOSTILE[0] if len(name) % 2 else "", "<b>host</b>\u202e")
        group.label = "<svg onload=alert(1)>{rank}"
    world.groups[0].wait([3], "<i>barrier</i>", 1, 30)
    world.groups[6].wait([1], "y" * 500, 1, 25)
    world.groups[4].fail([1], "<u>cause</u>", 20)
    world.note(world.groups[4], "rank_lost", ranks=[1], cause="<u>cause</u>", age_s=20)
    world.note(world.groups[0], "<s>what</s>", age_s=10)
    world.note(world.groups[6], "join_refused", ranks=[1], code="<em>code</em>", age_s=5)
    for raw in (b"\xff\xfe<b>", b"\xff\xfd<b>"):
        world.add(raw, 4, hosts="<b>host</b>\u202e").label = "<svg onload=alert(1)>{rank}"
    add_surroundings(world)
    world.prefixes[0]["prefix"] = HOSTILE[0]
    world.limits[0]["name"] = HOSTILE[0]
    world.server["host"] = "<h1>host</h1>"
    world.server["version"] = "<script>"
    while True:
        yield


def nothing(world: World) -> Iterator[None]:
    """No group, no key."""
    world.known_for_s = 12.0
    world.server["started"] += 5_388_000
    while True:
        yield


def forming(world: World) -> Iterator[None]:
    """A group forms, rank by rank, works, hangs, loses a rank, regroups, and works again."""
    add_surroundings(world)
    group = world.add("trainer", 32)
    absent = set(range(32))
    while len(absent) > 0:
        absent -= set(sorted(absent)[:2])
        if absent:
            since = group.since if group.state == "forming" else None
            group.form(absent)
            if since:
                group.since = group.held_up_since = since
        yield
    group.epoch = 1
    for _ in range(8):
        group.work(group.round + 1)
        yield
    group.wait([5], "barrier", group.round + 1, 0)
    for _ in range(30):
        yield
    group.fail([5], "heartbeat")
    world.note(group, "rank_lost", ranks=[5], cause="heartbeat")
    for _ in range(10):
        yield
    group.regroup([5])
    for _ in range(6):
        yield
    group.work(1)
    group.epoch = 2
    world.note(group, "regrouped")
    while True:
        yield


STORIES: dict[str, Callable[[World], Iterator[None]]] = {
    story.__name__: story
    for story in (calm, hang, failure, many, hostile, nothing, forming)}
