"""How objects, threads and processes end."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path

import muster
import pytest

Start = Callable[..., "subprocess.Popen[str]"]


def test_a_forked_child_is_told_and_its_parent_goes_on(process: Start) -> None:
    one = process("""
        import os
        store = muster.Store(address)
        group = muster.StatelessProcessGroup(store, "fork", 0, 1)
        child = os.fork()
        if child == 0:
            for call in (lambda: store.get("k"), group.barrier):
                try:
                    call()
                    os._exit(1)
                except muster.Forked:
                    pass
            with muster.Store(address, namespace="child") as own:
                own.set("k", "v")
            del group, store
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        group.barrier()
        print(os.waitstatus_to_exitcode(status), flush=True)
    """)
    out, errors = one.communicate(timeout=60)
    assert out.strip() == "0", errors
    assert one.returncode == 0


def test_a_forked_child_has_handlers_of_its_own(process: Start, address: str) -> None:
    one = process("""
        import os, threading
        told = threading.Event()
        with muster.Store(address, on_session_end=lambda error: told.set()) as lost:
            print(lost.process.id, flush=True)
            told.wait(20)  # so the thread of handlers is there
        child = os.fork()
        if child == 0:
            told.clear()
            own = muster.Store(address, on_session_end=lambda error: told.set())
            print(own.process.id, flush=True)
            os._exit(0 if told.wait(20) else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    """)
    assert one.stdout is not None
    with muster.Store(address, role="supervisor") as supervisor:
        for _ in range(2):
            supervisor.report_dead(one.stdout.readline().strip(), "its handler is told")
    out, errors = one.communicate(timeout=60)
    assert out.strip() == "0", errors


def test_a_forked_child_drops_a_scope_of_its_parents(process: Start) -> None:
    one = process("""
        import os
        import muster.runtime
        job = muster.runtime.Runtime({})
        job.init()
        turn = job.rank_zero()
        turn.__enter__()  # a with would keep it
        child = os.fork()
        if child == 0:
            del turn
            print("dropped", flush=True)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        turn.__exit__(None, None, None)
        print("goes on", flush=True)
    """)
    out, errors = one.communicate(timeout=60)
    assert out.split("\n")[:3] == ["dropped", "0", "goes on"], errors


def spawned(address: str, namespace: str, rank: int) -> None:
    with muster.Store(address, namespace=namespace) as store:
        group = muster.StatelessProcessGroup(store, "spawned", rank, 2)
        assert group.all_gather_obj(os.getpid())[rank] == os.getpid()
        group.barrier()


def test_spawned_processes_are_ranks(address: str, namespace: str) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=spawned, args=(address, namespace, rank)) for rank in range(2)
    ]
    for one in processes:
        one.start()
    for one in processes:
        one.join(60)
        assert one.exitcode == 0


@pytest.mark.parametrize("daemon", [True, False])
def test_the_interpreter_ends_while_calls_wait(process: Start, daemon: bool) -> None:
    one = process(f"""
        import threading, time
        store = muster.Store(address, timeout=30, on_session_end=print)
        group = muster.StatelessProcessGroup(store, "exit-{daemon}", 0, 1, on_loss=print)
        def wait():
            try:
                store.get("never", timeout={30 if daemon else 0.3})
            except muster.MusterError:
                pass
        for _ in range(8):
            threading.Thread(target=wait, daemon={daemon}).start()
        time.sleep(0.1)
        print("ends", flush=True)
    """)
    began = time.monotonic()
    out, errors = one.communicate(timeout=60)
    assert out.strip() == "ends"
    assert one.returncode == 0, errors
    assert errors == ""
    assert time.monotonic() - began < 25


@pytest.mark.parametrize("call, times", [
    ("store.get('never')", 4),
    ("store.get('never', timeout=0.001)", 100),
    ("store.set('k', 'v')", 400),
    ("store.whoami()", 400),
    ("group.barrier()", 400),
    ("group.send_obj(1, 0); group.recv_obj(0)", 400),
    ("group.watch(print).close()", 400),
    ("muster.Store(address)", 40),
    ("muster.Server().stop()", 40),
    ("asyncio.run(in_loop())", 20),
])
def test_daemon_threads_call_again_until_the_process_ends(
    process: Start, call: str, times: int
) -> None:
    one = process(f"""
        import asyncio, threading
        from muster import aio
        store = muster.Store(address, timeout=30)
        group = muster.StatelessProcessGroup(store, {call!r}, 0, 1, on_loss=print)
        async def in_loop():
            async with await aio.Store.connect(address) as own:
                while True:
                    begun.release()
                    await own.add("n")
        begun = threading.Semaphore(0)
        def again():
            while True:
                begun.release()
                try:
                    {call}
                except muster.MusterError:
                    pass
        for _ in range(4):
            threading.Thread(target=again, daemon=True).start()
        for _ in range({times}):
            begun.acquire()
        sys.exit(3)
    """)
    _, errors = one.communicate(timeout=60)
    assert one.returncode == 3, errors
    assert errors == ""


@pytest.mark.parametrize("call", [
    "store.get('never')",
    "store.set('k', 'v')",
    "store.wait(['never'])",
    "muster.StatelessProcessGroup(store, 'of two', 0, 2)",
    "group.recv_obj(0, tag=threading.get_ident())",
    "asyncio.run(waits())",
    "asyncio.run(in_loop())",
    "muster.runtime.FileLock(sys.argv[1], timeout=30)",
    "muster.runtime.SharedWorkspace('.', 0).read(1, timeout=30)",
    "watch_that_calls()",
])
def test_daemon_threads_in_calls_say_nothing_when_the_process_ends(
    process: Start, call: str, tmp_path: Path
) -> None:
    one = process(f"""
        import asyncio, logging, threading
        import muster.runtime
        from muster import aio
        logging.basicConfig()
        store = muster.Store(address, timeout=30, namespace="silent")
        group = muster.StatelessProcessGroup(store, {call!r}, 0, 1)
        begun = threading.Semaphore(0)
        async def waits():
            async with await aio.Store.connect(address) as own:
                begun.release()
                await own.get("never")
        async def in_loop():
            async with await aio.Store.connect(address) as own:
                while True:
                    begun.release()
                    await own.add("n")
        def handler(error):
            begun.release()
            store.get("never")
        def watch_that_calls():
            own = muster.StatelessProcessGroup(store, f"own{{threading.get_ident()}}", 0, 1)
            watch = own.watch(handler)
            own.close()
            threading.Event().wait()
        def again():
            while True:
                begun.release()
                {call}
        for _ in range(3):
            threading.Thread(target=again, daemon=True).start()
        for _ in range(4):
            begun.acquire(timeout=0.5)
        sys.exit(3)
    """, str(tmp_path / "lock"))
    _, errors = one.communicate(timeout=60)
    assert one.returncode == 3, errors
    assert errors == ""


def test_what_a_handler_raises_is_printed(process: Start) -> None:
    one = process("""
        import threading
        store = muster.Store(address, namespace="raises")
        group = muster.StatelessProcessGroup(store, "g", 0, 1)
        over = threading.Event()
        def handler(error):
            over.set()
            raise ZeroDivisionError("of the handler")
        watch = group.watch(handler)
        group.close()
        over.wait(30)
    """)
    out, errors = one.communicate(timeout=60)
    assert one.returncode == 0, errors
    assert "in handler" in errors and "ZeroDivisionError: of the handler" in errors


@pytest.mark.parametrize("event", ["on_session_end", "watch"])
@pytest.mark.parametrize("handler", ["waits for ever", "calls again and again"])
def test_a_handler_that_still_runs_does_not_keep_the_process(
    process: Start, address: str, event: str, handler: str
) -> None:
    one = process("""
        import threading
        begun = threading.Event()
        def waits(error):
            begun.set()
            threading.Event().wait()
        def calls(error):
            begun.set()
            while True:
                try:
                    other.get("k", timeout=0)
                except Exception:
                    pass
        event, handler = sys.argv[1], waits if sys.argv[2] == "waits for ever" else calls
        server = muster.Server()
        other = muster.Store(server.addresses[0])
        on_session_end = handler if event == "on_session_end" else None
        store = muster.Store(address, on_session_end=on_session_end)
        group = muster.StatelessProcessGroup(store, event + sys.argv[2], 0, 1)
        watch = group.watch(handler) if event == "watch" else None
        print(store.process.id, flush=True)
        begun.wait()
        sys.exit(7)
    """, event, handler)
    assert one.stdout is not None
    with muster.Store(address, role="supervisor") as supervisor:
        supervisor.report_dead(one.stdout.readline().strip(), "its handler runs")
    _, errors = one.communicate(timeout=30)
    assert one.returncode == 7, errors


def test_work_of_a_daemon_thread_ends_with_the_process(process: Start) -> None:
    one = process("""
        import threading, time
        import muster.runtime
        job = muster.runtime.Runtime({})
        job.init()
        begun = threading.Event()
        def work(progress):
            begun.set()
            while True:
                time.sleep(0.001)
        threading.Thread(target=job.on_rank_zero, args=(work,), daemon=True).start()
        begun.wait()
        sys.exit(3)
    """)
    _, errors = one.communicate(timeout=60)
    assert one.returncode == 3, errors
    assert errors == ""


def test_a_call_that_begins_when_the_interpreter_ends_is_refused(address: str) -> None:
    text = f"""
import atexit
def late():  # after Muster's own, which is registered later
    try:
        store.set("k", "v")
    except muster.Closed as refused:
        print(refused.code, refused.happened, refused.in_doubt, refused.ranks)
    assert group.close() == 0
    store.close()
    print("closed")
atexit.register(late)
import muster
store = muster.Store({address!r})
group = muster.StatelessProcessGroup(store, "late", 0, 1)
"""
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split("\n")[:2] == ["closed no False []", "closed"], done.stderr
    assert done.returncode == 0


def test_a_forked_child_does_not_wait_for_its_parents_calls(process: Start) -> None:
    one = process("""
        import os, threading, time
        store = muster.Store(address, timeout=30, namespace="fork-waits")
        threading.Thread(target=lambda: store.get("never"), daemon=True).start()
        with muster.Store(address, role="observer") as other:
            while other.status()["waits_count"] == "0":
                pass
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            sys.exit(5)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(status, time.monotonic() - began < 4, flush=True)
        store.close()
    """)
    out, errors = one.communicate(timeout=60)
    assert out.strip() == "5 True", errors


def test_an_event_loop_ends_while_calls_wait(process: Start) -> None:
    one = process("""
        import asyncio
        from muster import aio
        loop = asyncio.new_event_loop()
        store = loop.run_until_complete(aio.Store.connect(address))
        tasks = [loop.create_task(store.get("never", timeout=0.05)) for _ in range(100)]
        loop.run_until_complete(asyncio.sleep(0))
        import logging
        logging.disable()
    """)
    out, errors = one.communicate(timeout=60)
    assert one.returncode == 0, errors


def test_a_subinterpreter_is_refused_with_a_sentence(process: Start) -> None:
    one = process("""
        try:
            import _interpreters as interpreters  # since 3.13
        except ImportError:
            import _xxsubinterpreters as interpreters
        number = interpreters.create()
        try:
            refused = interpreters.run_string(number, "import muster")
        except interpreters.RunFailedError as failure:
            refused = failure
        print(getattr(refused, "formatted", refused), flush=True)
    """)
    out, errors = one.communicate(timeout=60)
    # Newer Pythons refuse such an extension themselves.
    assert "main interpreter alone" in out or "support loading in subinterp" in out, out + errors


def test_a_cycle_with_a_handler_is_collected(address: str, namespace: str) -> None:
    class Owner:
        def __init__(self) -> None:
            self.store = muster.Store(address, namespace=namespace, on_session_end=self.ended)
            self.group = muster.StatelessProcessGroup(self.store, "cycle", 0, 1, on_loss=self.lost)
            self.watch = self.group.watch(self.lost)

        def ended(self, error: muster.MusterError) -> None: ...

        def lost(self, error: muster.MusterError) -> None: ...

    owner = Owner()
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None
    with muster.Store(address, namespace=namespace) as store:
        until = time.monotonic() + 20
        while store.status()["sessions_count"] != "1" and time.monotonic() < until:
            time.sleep(0.01)


def resident_kib() -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def test_groups_leave_nothing_behind(address: str, namespace: str) -> None:
    """10,000 groups, one after the other: no object, thread, descriptor or memory is left."""
    count = int(os.environ.get("MUSTER_PYTHON_GROUPS", "10000"))
    with muster.Store(address, namespace=namespace) as store:

        def churn(groups: int) -> None:
            for _ in range(groups):
                group = muster.StatelessProcessGroup(store, "churn", 0, 1, on_loss=print)
                watch = group.watch(print)
                assert group.all_gather_obj({"k": 1}) == [{"k": 1}]
                watch.close()
                group.leave()

        churn(count // 10)
        gc.collect()
        objects, threads = len(gc.get_objects()), threading.active_count()
        descriptors, memory = len(os.listdir("/proc/self/fd")), resident_kib()
        natives = len(os.listdir("/proc/self/task"))
        churn(count - count // 10)
        gc.collect()
        assert len(gc.get_objects()) <= objects + 50
        assert threading.active_count() == threads
        assert len(os.listdir("/proc/self/fd")) == descriptors
        assert len(os.listdir("/proc/self/task")) <= natives
        if "asan" not in os.environ.get("LD_PRELOAD", ""):  # which keeps what is freed
            assert resident_kib() <= memory + 2048


def test_a_peer_that_is_killed_is_named(process: Start, address: str) -> None:
    peer = process("""
        store = muster.Store(address, namespace="killed", label="the victim")
        group = muster.StatelessProcessGroup(store, "g", 1, 2)
        print("ready", flush=True)
        group.barrier()
        group.recv_obj(0)
    """)
    with muster.Store(address, namespace="killed") as store:
        group = muster.StatelessProcessGroup(store, "g", 0, 2)
        group.barrier()
        peer.send_signal(signal.SIGKILL)
        with pytest.raises(muster.RankLost) as raised:
            group.barrier(timeout=60)
        assert raised.value.ranks[0].pid == peer.pid
        assert raised.value.ranks[0].label == "the victim"
        assert raised.value.cause == "closed"
        assert group.regroup().world_size == 1


def test_errors_travel_between_processes() -> None:
    import pickle

    error = muster.RankLost("gone", code="rank_lost", rank_numbers=[3], happened="maybe")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is muster.RankLost
    assert str(again) == "gone"
    assert again.rank_numbers == [3]
    assert again.in_doubt


def test_every_error_code_has_its_class() -> None:
    from muster.errors import _CLASSES

    assert len(set(_CLASSES.values())) == len(_CLASSES)
    for code, kind in _CLASSES.items():
        error = kind(f"about {code}", code=code)
        assert str(error) == f"about {code}"
        assert kind.__name__ in muster.__all__
        with pytest.raises(muster.MusterError):
            raise error


def test_an_import_that_fails_is_not_tried_again_at_the_end() -> None:
    text = (
        "import sys; sys.modules['muster.group'] = None\n"
        "try: import muster\nexcept ImportError: pass"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_import_pulls_in_little() -> None:
    text = (
        "import sys; import muster; "
        "print('imported', *sorted(set(sys.modules) & {'asyncio', 'numpy', 'torch'}))"
    )
    out = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert out.stdout.strip() == "imported", out.stderr
