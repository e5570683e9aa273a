"""What has to follow when the server dies, restarts, stands still or stops, or its host dies."""

import asyncio
import signal
import time

from processes import PATIENCE_S, Violation, within
from scenario import DEFAULT, JOINING, WORLD_SIZE

UNAVAILABLE_S = 30.0  # of calls with a later deadline
RESTART_S = 1.5


async def session_ends(run, ranks, listens_at, old, new):
    """All are told that another server answers: pending calls, the store, and new calls."""
    for rank in ranks:
        errors = [await rank.event_of(rank.session_ends, PATIENCE_S, "the end of the session")]
        if rank in run.pending:
            errors.append(await run.pending[rank].result())
        later = rank.begin("get", 5.0, key="k")
        errors.append(await later.result())
        for error in errors:
            run.expect_code(error, ["server_restarted"], f"{run.phase}: {rank.name}")
            if (error["expected"], error["actual"]) != (old, new):
                raise Violation(f"{rank.name}: incarnations {error['expected']}, "
                                f"{error['actual']}, not {old}, {new}")
        for error in errors[:-1]:
            run.measure(max(0.0, error["t"] - listens_at), 0.0, RESTART_S,
                        f"{run.phase}: {rank.name}")
        if errors[-1]["t"] - later.began > run.times.slack:
            raise Violation(f"{rank.name}: a later call did not fail at once")


async def restart(run):
    """Starts the server again on its port; returns when it listens."""
    await run.server.restart()
    return run.server.listens_at


async def begin_anew(run):
    """With the new server all works again, and nothing old is there."""
    for result in await asyncio.gather(*(rank.call("reopen") for rank in run.ranks)):
        run.expect_code(result, ["ok"], "reopening")
    found = await run.late.begin("get", 0.0, key="before").result()
    run.expect_code(found, ["not_found"], "what the old server held")
    await run.form(run.ranks)


async def incarnation(run):
    result = await run.late.call("status")
    return int(result["status"]["incarnation"])


async def server_restarted(run):
    await run.late.call("set", key="before")
    old = await incarnation(run)
    run.server.signal(signal.SIGKILL)
    await within(PATIENCE_S, "the end of musterd", run.server.process.wait())
    # As long as it is refused a rank knows that nothing of it lives on: it is not suspended.
    await asyncio.sleep(run.dice.choice([0.0, 0.3, 1.0, run.times.session]))
    listens_at = await restart(run)
    probe = await run.replacement()
    new = int((await probe.call("status"))["status"]["incarnation"])
    await session_ends(run, run.ranks, listens_at, old, new)
    await begin_anew(run)


async def server_gone(run):
    """Nobody listens: calls end at their deadline, or 30 s after the loss."""
    at = run.server.signal(signal.SIGKILL)
    await within(PATIENCE_S, "the end of musterd", run.server.process.wait())
    short = run.victim.begin("get", 3.0, key="k")
    error = await short.result()
    run.expect_code(error, ["unavailable"], str(short))
    run.measure(error["t"] - short.began, 2.9, 3.0 + run.times.slack, str(short))
    calls = run.pending or {run.late: run.late.begin("get", 90.0, key="k")}
    for call in calls.values():
        error = await call.result()
        run.expect_code(error, ["unavailable"], str(call))
        after_s = error["t"] - at
        if not UNAVAILABLE_S - 0.1 <= after_s <= UNAVAILABLE_S + run.times.slack:
            raise Violation(f"{call}: unavailable after {after_s:.2f} s")
    await restart(run)
    for rank in run.ranks:
        await rank.event_of(rank.session_ends, PATIENCE_S, "the end of the session")
    await begin_anew(run)


async def server_stops(run):
    """SIGTERM: all are told so."""
    at = run.server.signal(signal.SIGTERM)
    for call in run.pending.values():
        error = await call.result(run.times.slack + PATIENCE_S)
        run.expect_code(error, ["unavailable"], str(call))
        if "SIGTERM" not in error["message"]:
            raise Violation(f"{call} does not say why: {error['message']}")
        run.measure(error["t"] - at, 0.0, run.times.slack, str(call))
    code = await within(PATIENCE_S, "the end of musterd", run.server.process.wait())
    if code != 0:
        raise Violation(f"musterd ended with {code}")
    await restart(run)
    for rank in run.ranks:
        await rank.event_of(rank.session_ends, PATIENCE_S, "the end of the session")
    await begin_anew(run)


async def server_paused(run):
    """Ranks are suspended, groups stay whole, and what was begun goes on."""
    times = run.times
    at = run.server.signal(signal.SIGSTOP)
    least = 0.8 * times.session - 1.2 * times.heartbeat - 0.1
    for call in run.pending.values():
        error = await call.result()
        run.expect_code(error, ["suspended"], str(call))
        run.measure(error["t"] - at, least, 0.8 * times.session + times.slack, str(call))
    await run.pause_until(at + 0.8 * times.session + times.slack)
    for rank in run.ranks:
        later = rank.begin("get", 60.0, key="k")
        error = await later.result()
        run.expect_code(error, ["suspended"], str(later))
        if error["t"] - later.began > times.slack:
            raise Violation(f"{later}: not at once")
    pause_s = 60.0 if times.session > 10 else times.session + times.slack + 2.0
    await run.pause_until(at + pause_s)
    went_on = run.server.signal(signal.SIGCONT)
    for rank in run.ranks:
        await works_again(run, rank, went_on)
    await take_up(run)
    run.expect_undisturbed(run.ranks, run.phase)


async def works_again(run, rank, since):
    while True:
        result = await rank.begin("get", 0.0, key="k").result()
        if result["code"] == "not_found":
            return
        # While it connects anew, a call that does not wait finds no connection.
        run.expect_code(result, ["suspended", "unavailable"], "after the pause")
        if time.monotonic() > since + 5.0:
            raise Violation(f"{rank.name} is still suspended")
        await asyncio.sleep(0.05)


async def take_up(run):
    """What ended with `suspended` is asked for again, and ends well."""
    waiting = list(run.pending)
    if run.phase in JOINING:
        await run.form(run.ranks)
        return
    if run.phase in ("barrier", "all_gather"):
        calls = [rank.begin("recover", 30.0) for rank in waiting]
        rest = [rank for rank in run.ranks if rank not in waiting]
        await run.all_ok([run.collective(rank, run.phase) for rank in rest], run.phase)
        for result in await run.all_ok(calls, run.phase):
            if not result["called"] or "error" in result:
                raise Violation(f"recover gave {result}")
    elif run.phase == "recv":
        calls = {rank: rank.begin("recv", 30.0, source=run.late.rank if rank is run.victim
                                  else run.victims_rank) for rank in waiting}
        for rank in waiting:
            source = run.late if rank is run.victim else run.victim
            await source.call("send", destination=rank.rank, value=f"for {rank.rank}")
        for result, rank in zip(await run.all_ok(calls.values(), run.phase), waiting):
            if result["value"] != f"for {rank.rank}" or result["sequence"] != 0:
                raise Violation(f"{rank.name} received {result}")
    await run.gather_all(run.ranks)


# A server that rank 0 embeds.

async def host_dies(run):
    """All others are told who served, and go on with another host."""
    if run.phase == "during_join":
        return await host_returns(run)
    times = DEFAULT  # what an embedded server has
    host, *others = run.ranks
    number = signal.SIGKILL if run.fault.victim_dies else signal.SIGSTOP
    at = host.signal(number)
    bound = (times.grace if run.fault.victim_dies else 0.8 * times.session) + times.slack
    if not run.pending:
        run.pending = {rank: rank.begin("get", 60.0, key="k") for rank in others}
    for rank, call in run.pending.items():
        if rank is host:
            continue
        error = await call.result()
        expect_host(run, error, host, call)
        run.measure(error["t"] - at, 0.0, bound, str(call))
    if not run.fault.victim_dies:
        await run.pause_until(at + times.session + times.slack)
        host.signal(signal.SIGCONT)
        run.lenient.add(host)
    for rank, new_rank in zip(others, range(WORLD_SIZE - 1)):
        rank.rank = new_rank
    await form_at_host(run, others, "another")
    await run.gather_all(others)


def expect_host(run, error, host, call):
    """An error that names the rank that served."""
    run.expect_code(error, ["unavailable"], str(call))
    named = [(entry["rank"], entry["pid"]) for entry in error["ranks"]]
    if named != [(0, host.pid)]:
        raise Violation(f"{call}: names {named}, not rank 0 of pid {host.pid}")


async def host_returns(run):
    """While a group forms the others try on, to their deadline, and join when the host is back."""
    host, *others = run.ranks
    at = host.signal(signal.SIGKILL if run.fault.victim_dies else signal.SIGSTOP)
    if not run.fault.victim_dies:
        await run.pause_until(at + DEFAULT.session + DEFAULT.slack)
        host.signal(signal.SIGCONT)
        run.lenient.add(host)
    elif run.state["comes_back"]:
        await run.pause_until(at + run.dice.uniform(0.0, 2 * DEFAULT.grace))
        host = await run.new_rank(0, suffix="b")
        run.pending[host] = create(host, run.state["port"])
    else:
        for rank in others:
            call = run.pending[rank]
            error = await call.result()
            expect_host(run, error, run.victim, call)
            if error["t"] < call.began + call.timeout_s:
                raise Violation(f"{call}: before its deadline")
        for rank, new_rank in zip(others, range(WORLD_SIZE - 1)):
            rank.rank = new_rank
        await form_at_host(run, others, "another")
        return await run.gather_all(others)
    run.ranks = [host, run.late, *others]
    run.pending[run.late] = create(run.late, run.state["port"])
    await run.all_ok([run.pending[rank] for rank in run.ranks], "creating")
    await run.gather_all(run.ranks)


def create(rank, port, timeout_s=60.0, size=WORLD_SIZE, group="g"):
    return rank.begin("create", timeout_s, port=port, rank=rank.rank, size=size, group=group,
                      label=rank.name)


async def form_at_host(run, ranks, group):
    """Begins to create a group whose first rank serves; returns when all are in it."""
    port = (await ranks[0].call("listen"))["port"]
    calls = [create(rank, port, size=len(ranks), group=group) for rank in ranks]
    await run.all_ok(calls, "creating")


async def prepare_host(run):
    """In place of the usual preparation: no musterd, rank 0 serves with its default times."""
    for number in range(WORLD_SIZE):
        rank = await run.new_rank(number)
        await within(PATIENCE_S, "a start", rank.ready.wait())
        run.ranks.append(rank)
    run.victim, run.late, *run.others = run.ranks
    if run.phase == "during_join":
        port = (await run.victim.call("listen"))["port"]
        comes_back = not run.fault.victim_dies or run.dice.random() < 0.6
        run.state.update(port=port, comes_back=comes_back)
        for rank in (run.victim, *run.others):
            run.pending[rank] = create(rank, port, 60.0 if comes_back else 8.0)
        # It serves from the moment in which the others could connect.
        await asyncio.sleep(1.0)
        run.ranks = [run.victim, *run.others]
    else:
        await form_at_host(run, run.ranks, "g")
        await run.gather_all(run.ranks)
        run.wait_in_phase(60.0)
        await run.begun()
