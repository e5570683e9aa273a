"""Every call of stores, groups and operators, and those of communicators and the runtime that wait,
while the server does not answer: under Ctrl-C, in daemon threads of a process that ends, and in a
forked child. What stops a server, under Ctrl-C. Awaited calls that have a thread each."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import muster
import pytest
from conftest import PATIENCE
from muster import aio

Start = Callable[..., "subprocess.Popen[str]"]

# A group of its own for each call: one that was interrupted may be in doubt.
PRELUDE = f"""
        import os, signal, threading
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from public_calls import Things, calls
        address, server = sys.argv[1], int(sys.argv[2])
        owners = (muster.Store, muster.Operator, muster.StatelessProcessGroup)
        ends = ("cancel", "close", "watch", "reopen")  # which wait for no server here
        others = ("Communicator.attach", "Communicators.create", "RankGroup.__init__",
                  "muster.gloo.create", "muster.nccl.unique_id", "muster.runtime.recv_tensor",
                  "muster.runtime.recv_tensor_into", "muster.runtime.synchronize_over")
        waiting = [
            call for call in calls()
            if call.name in others
            or call.owner in owners and not call.name.endswith((".__init__", ".create"))
            and not call.name.endswith(ends)
        ]
        namespaces = iter(range(1000))
        all_things = {{
            call.name: Things(address, f"every{{next(namespaces)}}") for call in waiting
        }}
        for call in waiting:
            if call.owner is not None:
                all_things[call.name].of(call.owner)  # as long as the server answers
        def make(call):
            things = all_things[call.name]
            return things.make(call, things.arguments(call))
"""


# Sends this process a signal each 20 ms.
INTERRUPTS = """
        import os, signal, threading
        armed = False
        def on_interrupt(*_):
            global armed
            if armed:
                armed = False
                raise KeyboardInterrupt
        signal.signal(signal.SIGINT, on_interrupt)
        over = threading.Event()
        def interrupt():
            while not over.wait(0.02):
                os.kill(os.getpid(), signal.SIGINT)
        interrupting = threading.Thread(target=interrupt)
        interrupting.start()
        def told_of(call):
            global armed
            while True:
                try:
                    armed = True
                    call()
                    told = "returned"
                except KeyboardInterrupt as interrupted:
                    if not hasattr(interrupted, "error"):
                        continue  # no call waited
                    told = type(interrupted).__name__ + " " + (
                        interrupted.error.code if interrupted.error else str(interrupted.value))
                except muster.MusterError as error:
                    told = "raised " + str(error)
                armed = False
                return told
"""


def test_ctrl_c_ends_every_call(process: Start, own_server: tuple[str, int]) -> None:
    one = process(PRELUDE + INTERRUPTS + """
        os.kill(server, signal.SIGSTOP)
        for call in waiting:
            told = told_of(lambda: make(call))
            if told not in ("KeyboardInterrupt cancelled", "KeyboardInterrupt outcome_unknown"):
                print(call.name, told, flush=True)
        over.set()
        print(len(waiting) > 42, flush=True)
        os.kill(server, signal.SIGCONT)
    """, own_server[0], str(own_server[1]))
    out, errors = one.communicate(timeout=120)
    assert out == "True\n", errors


@pytest.mark.parametrize("end, value", [
    ("server.stop(timeout=300)", 1), ("group.close(300)", 1), ("group.__exit__()", 1),
    ("job.shutdown(timeout=300)", None),
])
def test_ctrl_c_ends_the_wait_of_what_stops_a_server(
    process: Start, end: str, value: int | None
) -> None:
    one = process(INTERRUPTS + """
        import muster.runtime
        place = f"unix:@muster-end-{os.getpid()}"
        if "server" in sys.argv[1]:
            server = muster.Server(place)
        elif "job" in sys.argv[1]:
            job = muster.runtime.Runtime({})
            job.init()
            place = job.group.store.address
        else:
            group = muster.StatelessProcessGroup.create(place, 0, 0, 1)
        stays = muster.Store(place)
        print(told_of(eval("lambda: " + sys.argv[1])), flush=True)
        over.set()
        interrupting.join()
        muster.Server(place)  # the address is free
        if "server" in sys.argv[1]:
            assert repr(server).endswith(", stopped>")
        else:
            assert "job" in sys.argv[1] or repr(group).endswith(", closed>")
    """, end)
    out, errors = one.communicate(timeout=60)
    assert (out, one.returncode) == (f"KeyboardInterrupt {value}\n", 0), errors


def test_a_stop_cuts_the_wait_of_another_one() -> None:
    with muster.Server() as server, muster.Store(server.addresses[0]):
        waiting = threading.Thread(target=server.stop, kwargs={"timeout": 300}, daemon=True)
        waiting.start()
        while not repr(server).endswith(", stopped>"):
            pass
        server.stop()
        waiting.join(PATIENCE)
        assert not waiting.is_alive()


def test_a_cancelled_close_stops_the_server() -> None:
    place = f"unix:@muster-cancelled-{os.getpid()}"

    async def main() -> None:
        group = await aio.StatelessProcessGroup.create(place, 0, 0, 1)
        with muster.Store(place):
            task = asyncio.create_task(group.close(300))
            while not repr(group).endswith(", closed>"):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError) as raised:
                await asyncio.wait_for(task, PATIENCE)
            cancelled: Any = raised.value
            assert (cancelled.error, cancelled.value) == (None, 1)
        muster.Server(place).stop()  # the address is free

    asyncio.run(main())


def test_every_call_of_a_daemon_thread_ends_silently(
    process: Start, own_server: tuple[str, int]
) -> None:
    one = process(PRELUDE + """
        begun = threading.Semaphore(0)
        def wait(call):
            begun.release()
            make(call)
        os.kill(server, signal.SIGSTOP)
        for call in waiting:
            threading.Thread(target=wait, args=(call,), daemon=True).start()
        for _ in waiting:
            begun.acquire()
        threading.Event().wait(0.2)  # most are in their calls; those that are not end as they begin
        sys.exit(3)
    """, own_server[0], str(own_server[1]))
    _, errors = one.communicate(timeout=60)
    assert (one.returncode, errors) == (3, "")


def test_a_forked_child_is_refused_every_call(
    process: Start, own_server: tuple[str, int]
) -> None:
    one = process(PRELUDE + """
        of_all = Things(address, "every class")
        ends_it = ("Runtime.abort", "Turn.__init__", "Watch.__init__")
        everything = [call for call in calls() if call.name not in ends_it]
        for call in everything:
            if call.owner is not None and not call.name.startswith("Communicator"):
                of_all.of(call.owner)
        child = os.fork()
        if child == 0:
            for call in everything:  # none waits for ever
                try:
                    of_all.make(call, of_all.arguments(call))
                except (muster.MusterError, TypeError):
                    pass
            for call in waiting:
                try:
                    make(call)
                    told = "returned"
                except muster.MusterError as error:
                    told = error.code
                if told != "forked":
                    print(call.name, told, flush=True)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for call in waiting:
            assert all_things[call.name].store.add("after the fork") == 1
        print(status, flush=True)
    """, own_server[0], str(own_server[1]))
    out, errors = one.communicate(timeout=60)
    assert out == "0\n", errors


def test_a_forked_child_is_told_no_other_values(process: Start) -> None:
    one = process(f"""
        import os, re
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from public_calls import Things, classes, name_of
        from muster import gloo
        things = Things(address, "properties")
        asked = [
            (things.of(owner), f"{{name_of(owner)}}.{{name}}", name)
            for owner in classes() if gloo.is_available() or name_of(owner) != "Communicator"
            for base in owner.__mro__ for name, member in vars(base).items()
            if isinstance(member, property) and not name.startswith("_")
        ]
        def values():
            for thing, label, name in asked:
                try:
                    yield label, re.sub("0x[0-9a-f]+", "", repr(getattr(thing, name)))
                except muster.MusterError as error:
                    yield label, error.code
        before = dict(values())
        if (child := os.fork()) == 0:
            for label, value in values():
                if value != before[label]:
                    print(label, value.partition("(")[0], flush=True)
            os._exit(0)
        os.waitpid(child, 0)
    """)
    out, errors = one.communicate(timeout=60)
    told = dict(line.split() for line in out.splitlines())
    told.pop("Communicator.error", None)  # it is Forked
    assert told.pop("FileLock.is_held") == "False"
    assert told == dict.fromkeys([
        f"{kind}{name}" for kind in ("", "aio.")
        for name in ("Store.incarnation", "Store.limits", "StatelessProcessGroup.counters")
    ], "forked"), errors


def test_a_child_that_ends_within_with_blocks_has_its_own_code(
    process: Start, tmp_path: Path
) -> None:
    one = process("""
        import os
        import muster.runtime
        with muster.Store(address, namespace="child") as store:
            with muster.StatelessProcessGroup(store, "g", 0, 1):
                with muster.runtime.FileLock(sys.argv[1]):
                    child = os.fork()
                    if child == 0:
                        sys.exit(5)
                    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    """, str(tmp_path / "lock"))
    out, errors = one.communicate(timeout=60)
    assert (out, errors) == ("5\n", "")


def test_a_call_needs_no_thread_of_the_executor(address: str, namespace: str) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        over = threading.Event()
        loop.set_default_executor(ThreadPoolExecutor(1))
        async with await aio.Store.connect(address, namespace=namespace) as store:
            blocked = loop.run_in_executor(None, over.wait)
            try:
                assert (await asyncio.wait_for(store.whoami(), PATIENCE)).identity == ""
            finally:
                over.set()
            await blocked

    asyncio.run(main())


@pytest.mark.parametrize("call", [
    "store.whoami(timeout=300)", "store.inspect('sessions', timeout=300)",
    "aio.StatelessProcessGroup.create(host, int(port), 1, 2, store_timeout=300)",
])
@pytest.mark.parametrize("is_closed", [True, False])
def test_the_end_of_the_interpreter_waits_for_no_awaited_call(
    process: Start, own_server: tuple[str, int], call: str, is_closed: bool
) -> None:
    one = process("""
        import asyncio, os, signal
        from muster import aio
        address, server, call, is_closed = sys.argv[1:]
        host, port = address.split(":")
        async def main():
            store = await aio.Store.connect(address)
            os.kill(int(server), signal.SIGSTOP)
            task = asyncio.ensure_future(eval(call))
            await asyncio.sleep(0)
            return store, task
        loop = asyncio.new_event_loop()
        kept = loop.run_until_complete(main())
        if is_closed == "True":
            loop.close()
        sys.exit(3)
    """, own_server[0], str(own_server[1]), call, str(is_closed))
    _, errors = one.communicate(timeout=60)
    assert one.returncode == 3, errors
