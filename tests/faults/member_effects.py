"""What has to follow when ranks leave, restart, come twice, are late or are declared dead."""

import asyncio
import re
import signal

from effects import go_on, heal, last_parts, nobody_else_notices, see_loss, survivors_learn
from processes import Violation
from scenario import JOINING
from server_effects import works_again

AT_ONCE_S = 0.5
SLOW_LOG_S = 10.0


async def reported(run):
    """A supervisor says so: `rank_lost` within 0.5 s, and the victim hears who said it."""
    if run.dice.random() < 0.5:
        run.lenient.add(run.victim)
        run.victim.signal(signal.SIGSTOP)
        run.state["is_stopped"] = True
    call = run.late.begin("report_dead", 10.0, process=run.victim.process_id)
    result = await call.result()
    run.expect_code(result, ["ok"], str(call))
    await see_loss(run, call.began)


async def go_on_if_stopped(run):
    if run.state.get("is_stopped"):
        return run.victim.signal(signal.SIGCONT)
    return asyncio.get_running_loop().time()


async def restarts(run):
    """A new process claims the rank: the old epoch breaks, the newcomer enters the next one only,
    and gets nothing that was meant for the old one."""
    if run.phase not in JOINING:
        await run.late.call("send", destination=run.victims_rank, value="old")
    newcomer = await run.replacement()
    killed_at = run.victim.signal(signal.SIGKILL)
    await run.victim.process.wait()
    await asyncio.sleep(0.02)  # what the server reads at once it reads in any order
    joining = run.join(newcomer)
    await joining.began_event.wait()
    if run.phase in JOINING:
        calls = [run.pending[rank] for rank in run.others]
        await asyncio.sleep(0.3)
        results = await run.all_ok([*calls, joining, run.join(run.late)], run.phase)
        run.measured.append(0.0)
        if len({result["epoch"] for result in results}) != 1:
            raise Violation("the ranks are in different epochs")
        await run.gather_all([*run.survivors, newcomer])
        run.expect_undisturbed(run.survivors, run.phase)
        return
    # Who is so late that the grace was over first finds an epoch that is broken already.
    is_late = joining.began - killed_at > run.times.grace - 0.1
    await survivors_learn(run, killed_at if is_late else joining.began)
    causes = {event["cause"] for rank in run.survivors for event in rank.losses}
    if not is_late and causes != {"restarted"}:
        raise Violation(f"the causes are {causes}")
    if joining.is_over:
        raise Violation(f"the newcomer did not wait: {joining.ended.result()}")
    calls = [rank.begin("regroup", 20.0, new_size=len(run.ranks)) for rank in run.survivors]
    await run.all_ok([*calls, joining], "regrouping")
    await run.gather_all([*run.survivors, newcomer])
    await run.late.call("send", destination=run.victims_rank, value="new")
    received = await newcomer.call("recv", source=run.late.rank)
    if (received["value"], received["sequence"]) != ("new", 0):
        raise Violation(f"the newcomer received {received}")


async def second_claims(run):
    """A second process claims a rank that lives: refused at once, the first goes on."""
    second = await run.replacement()
    call = run.join(second)
    error = await call.result()
    what = f"{run.phase}: the second"
    run.expect_victim(error, what, "rank_in_use", None)
    run.measure(error["t"] - call.began, 0.0, AT_ONCE_S, what)
    await nobody_else_notices(run)


async def leaves(run):
    """The others hear of it at once, in the round they are in."""
    if run.phase in JOINING:
        call = run.victim.begin("close", 5.0)
        await call.result()
        newcomer = await run.replacement()
        calls = [*(run.pending[rank] for rank in run.others), run.join(newcomer),
                 run.join(run.late)]
        await run.all_ok(calls, run.phase)
        await run.gather_all([*run.survivors, newcomer])
        run.expect_undisturbed(run.survivors, run.phase)
        return
    call = run.victim.begin(run.dice.choice(["leave", "close"]), 5.0)
    result = await call.result()
    run.expect_code(result, ["ok"], str(call))
    await survivors_learn(run, call.began)
    await go_on(run, own_return=False)


async def is_slow(run):
    """Two ranks live and do not come: never dead. The earliest deadline decides, and names them."""
    if run.phase == "during_join":
        await slow_to_join(run)
        return
    missing = sorted([run.late.rank, run.victims_rank])
    first = run.others[0]
    for rank in run.others:
        call = run.pending[rank]
        error = await call.result()
        run.expect_code(error, ["timed_out"], str(call))
        run.measure(error["t"] - run.pending[first].began, call.timeout_s - 0.05,
                    call.timeout_s + run.times.slack, str(call))
        if run.phase == "recv":
            continue
        named = [number for low, high in error["ranges"] for number in range(low, high + 1)]
        if named != missing or error["decided_by_rank"] not in (one.rank for one in run.others):
            raise Violation(f"{call}: names {named}, not {missing}: {error['message']}")
    if run.phase != "recv":
        see_slow_log(run, missing)
    if run.phase == "recv":
        for rank in run.others:
            run.pending[rank] = rank.begin("recv", 20.0, source=run.victims_rank)
            await run.victim.call("send", destination=rank.rank, value="late")
            result = await run.pending[rank].result()
            if (result.get("value"), result.get("sequence")) != ("late", 0):
                raise Violation(f"{rank.name} received {result}")
    else:
        for rank in (run.late, run.victim):
            call = run.collective(rank, run.phase)
            run.expect_code(await call.result(), ["timed_out"], f"late: {call}")
    await run.gather_all(run.ranks)
    run.expect_undisturbed(run.ranks, run.phase)


def see_slow_log(run, missing):
    """While the round waited the server's log named the missing ranks every 10 s."""
    waited_s = run.fault.wait_s(run.times)
    log = (run.place.folder / "musterd.err").read_text(encoding="utf-8")
    lines = re.findall(rf"round \d+: {run.phase}\b.* waits for ([\d.]+) s, missing: (.*)$", log,
                       re.M)
    ages = [float(age) for age, _ in lines]
    due = [SLOW_LOG_S * number for number in range(1, int(waited_s / SLOW_LOG_S) + 1)]
    if len(ages) != len(due) or any(not at <= age <= at + 1.0 for at, age in zip(due, ages)):
        raise Violation(f"the log told of the slow ranks after {ages} s, not {due} s")
    for _, named in lines:
        numbers = []
        for part in named.split(", "):
            first, _, last = part.partition("-")
            numbers += range(int(first), int(last or first) + 1)
        if numbers != missing:
            raise Violation(f"the log names the slow ranks {named}, not {missing}")


async def slow_to_join(run):
    """A joiner's deadline ends its own join only."""
    for call in run.pending.values():
        error = await call.result()
        run.expect_code(error, ["timed_out"], str(call))
        run.measure(error["t"] - call.began, call.timeout_s - 0.05,
                    call.timeout_s + run.times.slack, str(call))
    await run.form(run.ranks)
    run.expect_undisturbed(run.ranks, run.phase)


async def heard_but_deaf(run):
    """The server hears the victim, who hears nothing: it is suspended, and nobody else notices."""
    times, victim = run.times, run.victim
    at = await run.fault.inject(run)
    call = run.pending.get(victim) or victim.begin("get", 60.0, key="k")
    error = await call.result()
    run.expect_code(error, ["suspended"], str(call))
    run.measure(error["t"] - at, 0.8 * times.session - 1.2 * times.heartbeat - 0.1,
                0.8 * times.session + times.slack, str(call))
    await works_again(run, victim, await heal(run, at))
    calls = [run.pending[rank] for rank in run.others if rank in run.pending]
    if run.phase in ("barrier", "all_gather"):
        calls += [victim.begin("recover", 30.0), run.collective(run.late, run.phase)]
    elif run.phase == "recv":
        run.pending[victim] = victim.begin("recv", 30.0, source=run.late.rank)
        calls += [run.pending[victim], *last_parts(run)]
    else:
        run.pending.pop(victim, None)
        calls += [*([run.join(victim)] if run.phase == "during_join" else []), *last_parts(run)]
    await run.all_ok(calls, run.phase)
    await run.gather_all(run.ranks)
    run.expect_undisturbed(run.ranks, run.phase)


async def replies_come_late(run):
    """Calls that are over get no reply of theirs, nor does a later call get it."""
    victim = run.victim
    for number in range(3):
        await run.late.call("set", key=f"late{number}")
    await run.fault.inject(run)
    for number in range(3):
        call = victim.begin("append", 0.1, key=f"late{number}", value=str(number))
        error = await call.result()
        run.expect_code(error, ["outcome_unknown"], str(call))
        run.measure(error["t"] - call.began, 0.1, 0.2 + run.times.slack, str(call))
    await run.fault.heal(run)
    for number in range(3):
        result = await victim.call("get", key=f"late{number}")
        if result["value"] not in ("x", f"x{number}"):
            raise Violation(f"late{number} is '{result['value']}'")
    calls = [*run.pending.values(), *last_parts(run)]
    await run.all_ok(calls, run.phase)
    await run.gather_all(run.ranks)
    run.expect_undisturbed(run.ranks, run.phase)
