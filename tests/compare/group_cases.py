"""Cases of groups: objects, barriers, who is in a group, and what is heard of the dead."""

import asyncio
import signal
import statistics
import sys

from case import Case
from observation import (BRIEF_S, STORE_TIMEOUT_S, Observation, bounded, code_of, counted,
                         in_words, last_told, naming, spelled, told)
from outside import processes_ended
from processes import Program, Violation
from stages import FOLDER, ended, expect_ok

LONG_S = 90.0  # no wait that is looked at is longer
BARRIERS = 500
EXPIRATION_S = 1.0


async def all_ended(calls):
    results = [await ended(call, LONG_S) for call in calls]
    for call, result in zip(calls, results):
        if result is None:
            raise Violation(f"{call}: no end within {LONG_S:.0f} s")
    return results


def quoted(values):
    return in_words(f"“{value}”" for value in values)


# Objects.

async def two_senders(stage):
    await stage.start()
    *senders, receiver = await stage.group(3)
    sent = [f"of rank {number}" for number in (0, 1)]
    for sender, value in zip(senders, sent):
        await sender.call("send", destination=2, value=value)
    got = [(await receiver.call("recv", source=source))["value"] for source in (0, 1)]
    if got == sent:
        return Observation(f"right: {quoted(got)}")
    return Observation(f"**wrong**: {quoted(got)}")


async def expired_object(stage):
    await stage.start()
    zero, one = await stage.group(2, expiration_ms=round(EXPIRATION_S * 1000))
    await zero.call("send", destination=1, value="first")
    await asyncio.sleep(1.5 * EXPIRATION_S)
    await zero.call("send", destination=1, value="second")
    first = one.begin("recv", STORE_TIMEOUT_S, source=0)
    (result,) = await all_ended([first])
    second = one.begin("recv", STORE_TIMEOUT_S, source=0)
    (after,) = await all_ended([second])
    seen = told(result, first.began)
    then = (f"gets “{after['value']}”" if after["code"] == "ok" else
            f"gives an error after {bounded(after['t'] - second.began)}")
    return Observation(f"{seen}; the next receive {then}", seen.seconds)


async def restarted_rank(stage):
    await stage.start()
    zero, one = await stage.group(2)
    for value in ("old 0", "old 1"):
        await zero.call("send", destination=1, value=value)
        await one.call("recv", source=0)
    await one.kill()
    newcomer = await stage.client()
    joining = stage.join(newcomer, 1, 2)
    hearing = asyncio.create_task(zero.event_of(zero.losses, LONG_S, "a loss"))
    await asyncio.wait([joining.ended, hearing], return_when=asyncio.FIRST_COMPLETED)
    hearing.cancel()
    sending = zero.begin("send", STORE_TIMEOUT_S, destination=1, value="new")
    (result,) = await all_ended([sending])
    heard = "rank 0 is not told"
    if result["code"] != "ok":
        heard = f"rank 0 is told `{result['code']}`, {naming(result)}, and regroups"
        await zero.call("regroup", new_size=2)
        await zero.call("send", destination=1, value="new")
    expect_ok(joining, await joining.result())
    (got,) = await all_ended([newcomer.begin("recv", STORE_TIMEOUT_S, source=0)])
    verdict = "right" if got["value"] == "new" else "**wrong**"
    return Observation(f"{verdict}: it receives “{got['value']}”; {heard}")


async def two_claim(stage):
    await stage.start()
    zero, one = await stage.group(2)
    another = await stage.client()
    joining = stage.join(another, 1, 2)
    (result,) = await all_ended([joining])
    await zero.call("send", destination=1, value="the object")
    served = [one]
    if result["code"] == "ok":
        served.append(another)
    calls = [rank.begin("recv", BRIEF_S, source=0) for rank in served]
    got = [end["value"] for end in await all_ended(calls) if end["code"] == "ok"]
    seen = told(result, joining.began)
    received = {1: "the first goes on", 2: "**both** receive the same object"}
    return Observation(f"the second: {seen}; {received.get(len(got), 'neither receives')}",
                       seen.seconds)


async def off_by_one(stage):
    """Rank 1 gives step 0 up; then both do one step after the other."""
    await stage.start()
    zero, one = await stage.group(2, store_timeout_s=BRIEF_S)

    async def steps(rank, numbers):
        results = []
        for number in numbers:
            call = rank.begin("all_gather", BRIEF_S, value=f"step {number}")
            results += await all_ended([call])
        return results
    await steps(one, [0])
    of_zero, of_one = await asyncio.gather(steps(zero, range(4)), steps(one, range(1, 4)))
    got = [end["values"][0] if end["code"] == "ok" else "nothing" for end in of_one]
    late = ("gets “" + of_zero[0]["values"][1] + "”" if of_zero[0]["code"] == "ok" else
            f"is told {code_of(of_zero[0]).rstrip(',')}")
    verdict = "right" if got == [f"step {number}" for number in (1, 2, 3)] else "**wrong**"
    return Observation(f"{verdict}: in its steps 1, 2 and 3 it gets rank 0's {quoted(got)}; rank 0 "
                       f"in its step 0 {late}")


# Barriers, and who is missing.

async def creation_missing(stage):
    await stage.start()
    ranks = await stage.clients(2)
    calls = [stage.join(rank, number, 3, BRIEF_S) for number, rank in enumerate(ranks)]
    ends = [told(result, call.began) for call, result in zip(calls, await all_ended(calls))]
    return Observation("; ".join(f"rank {number}: {end}" for number, end in enumerate(ends)),
                       max(end.seconds for end in ends))


async def barrier_missing(stage, missing_count=1):
    await stage.start()
    ranks = await stage.group(4)
    calls = [rank.begin("barrier", BRIEF_S) for rank in ranks[:4 - missing_count]]
    results = await all_ended(calls)
    return last_told(results, min(call.began for call in calls))


async def killed_in_barrier(stage, number=signal.SIGKILL):
    await stage.start()
    *others, victim = await stage.group(3)
    calls = [rank.begin("barrier", STORE_TIMEOUT_S) for rank in others]
    for call in calls:
        await call.began_event.wait()
    at = victim.signal(number)
    return last_told(await all_ended(calls), at)


async def leaves_before_barrier(stage):
    """In order: of a group without such a call, by ending its process."""
    await stage.start()
    *others, leaver = await stage.group(3)
    calls = [rank.begin("barrier", STORE_TIMEOUT_S) for rank in others]
    for call in calls:
        await call.began_event.wait()
    return calls, leaver


async def muster_leaves(stage):
    calls, leaver = await leaves_before_barrier(stage)
    leaving = leaver.begin("leave")
    await leaving.result()
    return last_told(await all_ended(calls), leaving.began)


async def tcpstore_leaves(stage):
    calls, leaver = await leaves_before_barrier(stage)
    at = leaver.signal(signal.SIGTERM)
    return last_told(await all_ended(calls), at)


async def waits_for_killed(stage):
    await stage.start()
    victim, receiver = await stage.group(2)
    call = receiver.begin("recv", STORE_TIMEOUT_S, source=0)
    await call.began_event.wait()
    at = victim.signal(signal.SIGKILL)
    return last_told(await all_ended([call]), at)


async def redis_waits_for_killed(stage):
    """Of a list that a process fills which is killed."""
    await stage.start()
    receiver = await stage.client()
    writer = Program(stage.place, "writer", ["redis-cli", "-p",
                                             stage.server.address.rsplit(":", 1)[1]])
    writer.take = lambda line: None
    await writer.start()
    await receiver.call("PING")
    writer.signal(signal.SIGKILL)
    reply, seconds = await receiver.timed(LONG_S, "BLPOP", "list", int(STORE_TIMEOUT_S))
    what = "nil" if reply is None else f"“{reply}”"
    return Observation(f"{what} after {bounded(seconds)}", seconds)


async def keys_after_barriers(stage):
    await stage.start()
    ranks = await stage.group(2)
    before = await stage.held(ranks[0])
    calls = [rank.begin("barriers", 120.0, count=BARRIERS) for rank in ranks]
    for call in calls:
        expect_ok(call, await call.result())
    after = await stage.held(ranks[0])
    return Observation(in_words(counted(after[thing] - before[thing], thing) for thing in after))


# The process that hosts the server dies.

async def hosted_end(host, receiver, waiter):
    calls = [receiver.begin("recv", STORE_TIMEOUT_S, source=0),
             waiter.begin("barrier", STORE_TIMEOUT_S)]
    for call in calls:
        await call.began_event.wait()
    at = host.signal(signal.SIGKILL)
    seen = last_told(await all_ended(calls), at)
    return Observation(f"{seen}{await processes_ended([receiver, waiter])}", seen.seconds)


async def muster_host_dies(stage):
    ranks = [await stage.started(stage.new_rank()) for _ in range(3)]
    port = (await ranks[0].call("listen"))["port"]
    calls = [rank.begin("create", STORE_TIMEOUT_S, port=port, rank=number, size=3)
             for number, rank in enumerate(ranks)]
    for call in calls:
        expect_ok(call, await call.result())
    return await hosted_end(*ranks)


async def tcpstore_host_dies(stage):
    await stage.start()
    host = stage.server
    others = await stage.clients(2)
    calls = [stage.join(rank, number, 3) for number, rank in enumerate([host, *others])]
    for call in calls:
        expect_ok(call, await call.result())
    return await hosted_end(host, *others)


# The time of a barrier, and of an all_gather.

def median_of(took_us):
    seconds = statistics.median(took_us) / 1e6
    return Observation(spelled(seconds), seconds)


def repetitions(ranks_count):
    return max(5, 400 // ranks_count)


async def muster_round_time(stage, what, ranks_count):
    await stage.start()
    ranks = await stage.group(ranks_count)
    for count in (2, repetitions(ranks_count)):
        calls = [rank.begin(what + "s", LONG_S, count=count) for rank in ranks]
        results = await all_ended(calls)
        for call, result in zip(calls, results):
            expect_ok(call, result)
    return median_of(results[0]["took_us"])


class ManyRanks(Program):
    """Ranks of the TCPStore that are forked from one process, since each import takes seconds."""

    def __init__(self, stage, what, ranks_count):
        port = stage.server.address.rsplit(":", 1)[1]
        super().__init__(stage.place, "ranks",
                         [sys.executable, FOLDER / "tcpstore_worker.py", port, ranks_count, what,
                          repetitions(ranks_count)])
        self.line = asyncio.get_running_loop().create_future()

    def take(self, line):
        self.line.set_result(line)


async def tcpstore_round_time(stage, what, ranks_count):
    await stage.start()
    ranks = ManyRanks(stage, what, ranks_count)
    await ranks.start()
    line = await asyncio.wait_for(ranks.line, LONG_S)
    return median_of([int(number) for number in line.strip("[]").split(",")])


OBJECTS = [
    Case("two_senders", "Ranks 0 and 1 each send rank 2 an object, which receives from 0, then 1",
         two_senders),
    Case("expired_object", f"An object expires ({EXPIRATION_S:.0f} s) before its receiver comes",
         expired_object),
    Case("restarted_rank", "A rank is killed and restarted under the same rank, and receives",
         restarted_rank),
    Case("two_claim", "Two live processes claim one rank", two_claim),
    Case("off_by_one", f"Rank 1 gives an all_gather up after {BRIEF_S:.0f} s, and goes on to the "
         "next", off_by_one),
]

WAITS = [
    Case("creation_missing", f"A group of 3 is created with a time-out of {BRIEF_S:.0f} s, rank 2 "
         "does not come", creation_missing),
    Case("barrier_missing_1", f"A barrier of 4 ranks with a time-out of {BRIEF_S:.0f} s, rank 3 "
         "does not come", barrier_missing),
    Case("barrier_missing_2", f"A barrier of 4 ranks with a time-out of {BRIEF_S:.0f} s, ranks 2 "
         "and 3 do not come", barrier_missing, options={"missing_count": 2}),
    Case("killed_in_barrier", "Rank 2 is killed while the others wait in a barrier "
         f"({STORE_TIMEOUT_S:.0f} s): they hear",
         killed_in_barrier),
    Case("leaves_before_barrier", "Rank 2 leaves in order while the others wait in a barrier: they "
         "hear", muster=muster_leaves, tcpstore=tcpstore_leaves),
    Case("stopped_in_barrier", "Rank 2 is stopped (SIGSTOP) while the others wait in a barrier: "
         "they hear", killed_in_barrier, options={"number": signal.SIGSTOP}),
    Case("waits_for_killed", "Rank 0 is killed while rank 1 waits to receive from it (redis: "
         "`BLPOP`): it hears", waits_for_killed, redis=redis_waits_for_killed),
    Case("host_dies", "Rank 0 is killed, which hosts the server, while the others receive or wait "
         "in a barrier: they hear", muster=muster_host_dies, tcpstore=tcpstore_host_dies),
    Case("keys_after_barriers", f"Left on the server after {BARRIERS} barriers",
         keys_after_barriers),
]

TIMES = [Case(f"{what}_{count}", f"One {what} of {count} ranks, each a process: median at rank 0",
              muster=muster_round_time, tcpstore=tcpstore_round_time, alone=True,
              options={"what": what, "ranks_count": count})
         for what, counts in (("barrier", (8, 16, 64, 128)), ("all_gather", (8, 64)))
         for count in counts]
GROUP_CASES = [*OBJECTS, *WAITS, *TIMES]
