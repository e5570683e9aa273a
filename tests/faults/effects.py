"""What has to follow a fault, in each phase. Each effect is a function of a run."""

import asyncio
import time

from processes import PATIENCE_S, Violation
from scenario import JOINING, WORLD_SIZE

# A rank that was away hears of it when it has connected again; nothing promises how soon.
HEARS_S = 5.0


def least_of_silence(times):
    """What the server has heard last of a rank may be a heartbeat old."""
    return times.session - 1.2 * times.heartbeat - 0.1


# The victim is lost to the others.

async def lost(run):
    at = await run.fault.inject(run)
    await see_loss(run, at)


async def see_loss(run, at):
    fault = run.fault
    if not fault.victim_dies:
        run.state["write"] = run.victim.begin("add", 60.0, key="counter")
    if run.phase in JOINING:
        await seat_is_taken(run, at)
        return
    await survivors_learn(run, at)
    own_return = run.dice.random() < 0.5
    if not fault.victim_dies and own_return:
        await victim_learns(run, at)
    await go_on(run, own_return)
    if not fault.victim_dies and not own_return:
        await victim_learns(run, at)


async def further_calls_fail(run):
    """At once, and as the first one; a receive too."""
    name = "all_gather" if run.phase == "all_gather" else "barrier"
    calls = [run.collective(rank, name) for rank in run.survivors]
    for call in calls:
        error = await call.result()
        run.expect_victim(error, f"later: {call}", run.fault.code, run.fault.cause)
        if error["t"] - call.began > run.times.slack:
            raise Violation(f"later: {call} took {error['t'] - call.began:.2f} s")


async def go_on(run, own_return):
    """The survivors form the next epoch, by themselves or with somebody in the victim's place."""
    if not own_return and run.dice.random() < 0.5:
        made = await run.all_ok([rank.begin("regroup", 20.0) for rank in run.survivors],
                                "regrouping")
        for rank, result in zip(run.survivors, made):
            rank.rank = result["rank"]
        await run.gather_all(run.survivors)
        return
    newcomer = run.victim
    if run.fault.victim_dies or not own_return:
        newcomer = await run.replacement()
    joining = run.join(newcomer)
    calls = [rank.begin("regroup", 20.0, new_size=WORLD_SIZE) for rank in run.survivors]
    epochs = {result["epoch"] for result in await run.all_ok([*calls, joining], "regrouping")}
    if len(epochs) != 1:
        raise Violation(f"epochs {epochs}")
    await run.gather_all([*run.survivors, newcomer])


async def seat_is_taken(run, at):
    """While a group forms, the others wait on, and another process takes the victim's rank."""
    fault = run.fault
    newcomer = run.victim
    if run.phase == "during_join" and run.dice.random() < 0.3:
        late = run.join(run.late)
        if await forms_with_victim(run, late, at):
            return
        run.pending[run.late] = late
    own_return = not fault.victim_dies and run.dice.random() < 0.5
    if own_return:
        await victim_learns(run, at)
    else:
        newcomer = await run.replacement()
        if fault.cause == ("heartbeat",):  # a rank that was just heard is in use
            await run.pause_until(at + 3 * run.times.heartbeat + 1.0)
    calls = [run.pending[rank] for rank in run.survivors if rank in run.pending]
    for call in calls:
        if call.is_over:
            raise Violation(f"{run.phase}: {call} has ended: {call.ended.result()['code']}")
    calls.append(run.join(newcomer))
    if run.late not in run.pending:  # not before the place is free, else the dead one is counted
        if run.phase == "during_join":
            await run.pause_until(at + fault.bound_s(run.times))
        calls.append(run.join(run.late))
    results = await run.all_ok(calls, run.phase)
    formed_at = max(result["t"] for result in results)
    joined_at = max(call.began for call in calls)
    bound = fault.bound_s(run.times)
    free_at = joined_at if run.phase == "before_join" else max(joined_at, at + bound)
    if formed_at > free_at + run.times.slack:
        raise Violation(f"{run.phase}: formed {formed_at - free_at:.2f} s after it could")
    await run.gather_all([*run.survivors, newcomer])
    run.expect_undisturbed(run.survivors, run.phase)
    if not fault.victim_dies and not own_return:
        await victim_learns(run, at)


async def forms_with_victim(run, late, at):
    """All are there before the loss is seen: the group forms, and its epoch breaks. Returns whether
    it came to that."""
    calls = [*(run.pending[rank] for rank in run.others), late]
    bound = run.fault.bound_s(run.times)
    while not late.is_over and time.monotonic() < at + bound:
        await asyncio.sleep(0.02)
    if not late.is_over:
        return False
    await run.all_ok(calls, run.phase)
    run.state["formed"] = True
    await survivors_learn(run, at)
    if not run.fault.victim_dies:
        await victim_learns(run, at)
    await go_on(run, own_return=not run.fault.victim_dies)
    return True


async def survivors_learn(run, at):
    """All others are told of the loss in time, in the call in which they wait or by `on_loss`."""
    fault = run.fault
    least, bound = fault.least_s(run.times), fault.bound_s(run.times)
    for rank in run.survivors:
        if rank in run.pending and run.phase != "during_join":
            error = await run.pending[rank].result()
        else:
            limit_s = max(0.0, at + bound - time.monotonic()) + PATIENCE_S
            error = await rank.event_of(rank.losses, limit_s, "the loss")
        what = f"{run.phase}: {rank.name}"
        run.expect_victim(error, what, fault.code, fault.cause)
        run.measure(error["t"] - at, least, bound, what)
    await further_calls_fail(run)


async def victim_learns(run, at):
    """A victim that lives is told what became of it; what it wrote meanwhile is refused."""
    fault, victim, times = run.fault, run.victim, run.times
    healed_at = await heal(run, at)
    final = fault.victim_code
    calls = [run.state["write"], *([run.pending[victim]] if victim in run.pending else [])]
    for call in calls:
        error = await call.result()
        if error["code"] == "ok" and call.name == "join" and run.state.get("formed") and (
                fault.replies_arrive):
            continue
        run.expect_code(error, ["suspended", "outcome_unknown", final], f"the victim's {call}")
        late_by = error["t"] - max(healed_at, at + 0.8 * times.session + times.slack)
        if error["code"] == "suspended" and error["t"] - at < 0.8 * times.session - 1.2 * (
                times.heartbeat) - 0.1:
            raise Violation(f"suspended after {error['t'] - at:.2f} s already")
        if late_by > HEARS_S:
            raise Violation(f"the victim's {call} ended {late_by:.2f} s too late")
    until = time.monotonic() + HEARS_S
    while True:
        error = await victim.begin("get", 5.0, key="counter").result()
        if error["code"] == final:
            break
        run.expect_code(error, ["suspended", "unavailable"], "the victim's next call")
        if time.monotonic() > until:
            raise Violation(f"the victim was not told {final} in time")
        await asyncio.sleep(0.05)
    await victim.event_of(victim.session_ends, PATIENCE_S, "the end of the session")
    found = await run.others[0].begin("get", 0.0, key="counter").result()
    if not (fault.writes_arrive and found.get("value") == "1"):
        run.expect_code(found, ["not_found"], "a write of the victim")
    await victim.call("reopen")


async def heal(run, at):
    """Ends the harm when it is due; returns when that was."""
    if run.fault.lasts_s is not None:
        await run.pause_until(at + run.fault.lasts_s(run.times, run.dice))
    if run.fault.heal is None:
        return time.monotonic()
    return await run.fault.heal(run)


# Nobody notices.

async def unnoticed(run):
    at = await run.fault.inject(run)
    writes = [rank.begin("add", 60.0, key=f"counter{rank.rank}")
              for rank in (run.victim, run.others[0])]
    calls = list(run.pending.values())
    meanwhile = run.dice.random() < 0.5
    if meanwhile:
        calls += last_parts(run)
    healed_at = await heal(run, at)
    if not meanwhile:
        calls += last_parts(run)
    results = await run.all_ok([*calls, *writes], run.phase)
    begun_at = max([call.began for call in calls], default=healed_at)
    ends_after = max(result["t"] for result in results) - max(healed_at, begun_at)
    run.measure(max(ends_after, 0.0), 0.0, run.fault.bound_s(run.times),
                f"{run.phase}: the last call")
    for rank in (run.victim, run.others[0]):
        found = await run.late.call("get", key=f"counter{rank.rank}")
        if found["value"] != "1":
            raise Violation(f"a write was applied {found['value']} times")
    if run.phase == "recv":
        for rank in [*run.others, run.victim]:
            if (value := (await run.pending[rank].result())["value"]) != f"for {rank.rank}":
                raise Violation(f"{rank.name} received '{value}'")
    await run.gather_all(run.ranks)
    run.expect_undisturbed(run.ranks, run.phase)


async def nobody_else_notices(run):
    """What the effect has measured so far is what counts."""
    measured = list(run.measured)
    await unnoticed(run)
    run.measured = measured


def last_parts(run):
    """What lets all calls of the phase end well."""
    phase = run.phase
    if phase == "before_join":
        return [run.join(run.victim), run.join(run.late)]
    if phase == "during_join":
        return [run.join(run.late)]
    if phase in ("barrier", "all_gather"):
        ranks = [run.late] if run.victim in run.pending else [run.late, run.victim]
        return [run.collective(rank, phase) for rank in ranks]
    if phase == "recv":
        calls = [run.victim.begin("send", 60.0, destination=rank.rank, value=f"for {rank.rank}")
                 for rank in run.others]
        return [*calls, run.late.begin("send", 60.0, destination=run.victims_rank,
                                       value=f"for {run.victims_rank}")]
    return [run.collective(rank, "barrier") for rank in run.ranks]


async def now(_run):
    """Nothing more than what the run itself does."""
    return time.monotonic()
