"""Objects that come late, count wrong or are of another codec: while the others wait in the phase,
whom all this does not touch."""

import asyncio
import re

from effects import nobody_else_notices, now
from fault import GROUP_PHASES, Fault
from processes import RawClient, Violation, within, PATIENCE_S

AT_ONCE_S = 0.5
EXPIRATION_MS = 2000
COUNT = 20
ANOTHER_CODEC = 4711


async def send(rank, to, value):
    return await rank.call("send", destination=to.rank, value=value)


def see_object(result, value, sequence, what):
    if (result.get("value"), result.get("sequence", sequence)) != (value, sequence):
        raise Violation(f"{what}: {result}, not '{value}' of sequence {sequence}")


def see_source(error, source, what):
    """The error names the sender of the object, and nobody else."""
    named = [(rank["rank"], rank["pid"]) for rank in error["ranks"]]
    if error["ranges"] != [[source.rank, source.rank]] or named != [(source.rank, source.pid)]:
        raise Violation(f"{what}: names {error['ranges']} {named}, not rank {source.rank} of pid "
                        f"{source.pid}")


async def two_send(run):
    """Two streams to one receiver, which takes from them in an order of its own."""
    async def send_all(source):
        for number in range(COUNT):
            await send(source, run.late, f"{number} of {source.rank}")
    sending = asyncio.gather(*(send_all(source) for source in run.others))
    order = [source for source in run.others for _ in range(COUNT)]
    run.dice.shuffle(order)
    next_of = dict.fromkeys(run.others, 0)
    for source in order:
        call = run.late.begin("recv", 20.0, source=source.rank)
        see_object(await call.result(), f"{next_of[source]} of {source.rank}", next_of[source],
                   str(call))
        next_of[source] += 1
    await sending
    # A last one of each, the time of which is measured: no sender waits for the other one.
    for source in run.others:
        call = run.late.begin("recv", 20.0, source=source.rank)
        await call.began_event.wait()
        sent = source.begin("send", 20.0, destination=run.late.rank, value="last")
        result = await call.result()
        see_object(result, "last", COUNT, str(call))
        run.measure(max(0.0, result["t"] - max(sent.began, call.began)), 0.0, AT_ONCE_S, str(call))
        await run.all_ok([sent], "the last object")
    await nobody_else_notices(run)


async def let_objects_expire(run):
    run.state["join"] = {"expiration_ms": EXPIRATION_MS}


def see_age(error, sent, what):
    """The error tells how old the object is: no less than it was when the receiver asked, and no
    more than it was when the answer came."""
    told = re.search(r"was sent (\d+(?:\.\d+)?) s ago or earlier", error["message"])
    if told is None:
        raise Violation(f"{what} does not tell the object's age: {error['message']}")
    oldest_s = error["t"] - sent.began
    if not EXPIRATION_MS / 1000 <= float(told[1]) <= oldest_s + 0.01:
        raise Violation(f"{what}: the object is said to be {told[1]} s old, not up to "
                        f"{oldest_s:.3f} s")


async def object_expires(run):
    source = run.others[0]
    sent = source.begin("send", 20.0, destination=run.late.rank, value="old")
    await run.all_ok([sent], "sending")
    await asyncio.sleep(EXPIRATION_MS / 1000 + 0.1)
    await send(source, run.late, "young")
    call = run.late.begin("recv", 20.0, source=source.rank)
    error = await call.result()
    run.expect_code(error, ["expired"], str(call))
    see_source(error, source, str(call))
    if error["actual"] != 0:
        raise Violation(f"{call} does not name the object: {error['message']}")
    see_age(error, sent, str(call))
    run.measure(error["t"] - call.began, 0.0, AT_ONCE_S, str(call))
    call = run.late.begin("recv", 20.0, source=source.rank)
    see_object(await call.result(), "young", 1, str(call))
    await nobody_else_notices(run)


async def receiver_loses_count(run):
    """A group of its own, since no rank of the library loses count."""
    source = await run.new_rank(0, suffix="c")
    await source.connect(run.server.address, label=source.name)
    receiver = await RawClient(run.place, run.server.address, "lost_count", "count").start()
    await source.call("join", group="count", rank=0, size=2)
    reply = await receiver.next()  # it has joined
    for value in ("zero", "one"):
        await source.call("send", destination=1, value=value)
    for got, wanted in ((5, 0), (0, None), (0, 1), (2, 1), (1, None)):
        began, reply = reply["t"], await receiver.next()
        what = f"a receive of sequence {got}"
        if wanted is None:
            see_object(reply, ("zero", "one")[got], got, what)
            continue
        run.expect_code(reply, ["sequence_gap"], what)
        if (reply["expected"], reply["actual"]) != (wanted, got):
            raise Violation(f"{what}: {reply['message']}")
        if reply["ranks"] or reply["ranges"]:  # nobody else is to blame
            raise Violation(f"{what} names {reply['ranges']}")
        run.measure(reply["t"] - began, 0.0, AT_ONCE_S, what)
    code = await within(PATIENCE_S, "the end of the receiver", receiver.process.wait())
    if code != 0:
        raise Violation(f"the receiver ended with {code}")
    await nobody_else_notices(run)


async def codecs_differ(run):
    """The object stays, for who names its codec."""
    source = run.others[0]
    await send(source, run.late, "raw")
    call = run.late.begin("recv", 20.0, source=source.rank, codec=ANOTHER_CODEC)
    error = await call.result()
    run.expect_code(error, ["codec_mismatch"], str(call))
    see_source(error, source, str(call))
    if error["expected"] != ANOTHER_CODEC or error["actual"] in (0, ANOTHER_CODEC):
        raise Violation(f"{call} does not name both codecs: {error['message']}")
    run.measure(error["t"] - call.began, 0.0, AT_ONCE_S, str(call))
    call = run.late.begin("recv", 20.0, source=source.rank)
    see_object(await call.result(), "raw", 0, str(call))
    await nobody_else_notices(run)


AT_ONCE = {"inject": now, "bound_s": lambda t: AT_ONCE_S, "promise": "at once",
           "phases": GROUP_PHASES}
OBJECTS = [
    Fault("two_senders", "two senders, one receiver", two_send, **AT_ONCE),
    Fault("object_expired", "an object expired before a slow receiver came", object_expires,
          prepare=let_objects_expire, **AT_ONCE),
    # The receiver speaks by hand, and in clear would be of another tenant.
    Fault("lost_count", "a receiver lost count", receiver_loses_count, only="clear", **AT_ONCE),
    Fault("codecs_differ", "sender and receiver use different codecs", codecs_differ, **AT_ONCE),
]
