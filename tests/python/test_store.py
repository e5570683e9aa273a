"""Keys and values, from Python."""

from __future__ import annotations

import asyncio
import ctypes
import inspect
import os
import subprocess
import threading
import time
import weakref
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from subprocess import Popen
from typing import Any

import muster
import pytest
from muster import aio


def test_what_was_set_is_got(store: muster.Store) -> None:
    assert store.set("k", b"v") is True
    assert store.get("k") == b"v"
    assert store.set("k", "ü", only_if_absent=True) is False
    assert store.get(b"k") == b"v"
    assert store.exists("k")
    assert store.remove("k")
    assert not store.remove("k")


@pytest.mark.parametrize("value", [b"a\0b", bytearray(b"ab"), memoryview(b"xabx")[1:3], "ü"])
def test_any_bytes_are_a_value_and_a_key(store: muster.Store, value: object) -> None:
    store.set(value, value)  # type: ignore[arg-type]
    expected = value.encode() if isinstance(value, str) else bytes(value)  # type: ignore
    assert store.get(expected) == expected


def test_a_buffer_is_given_back_when_its_call_has_ended(store: muster.Store) -> None:
    value = bytearray(b"four")
    store.set("k", value)
    value += b" more"  # it could not grow while somebody has its buffer
    store.multi_set({"a": value, "b": value})
    store.compare_set("k", value, value)
    value.clear()
    assert store.get("a") == b"four more"


def test_what_is_no_bytes_is_refused_by_name(store: muster.Store) -> None:
    with pytest.raises(TypeError, match="int"):
        store.set("k", 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="several keys"):
        store.multi_get("keys")
    with pytest.raises(TypeError, match="seconds or a timedelta"):
        store.get("k", timeout="3")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="negative"):
        store.get("k", timeout=-1)
    with pytest.raises(BufferError):
        store.set("k", memoryview(b"abcdef")[::2])


def test_an_argument_without_its_name_is_told_the_name(store: muster.Store) -> None:
    group = muster.StatelessProcessGroup(store, "g", 0, 1)
    in_loop = aio.Store._of(store._handle)
    calls: list[tuple[Callable[..., Any], tuple[object, ...], str]] = [
        (group.barrier, (5,), "barrier() takes 0 arguments .* 1 were given.* by name: timeout="),
        (store.get, ("k", 1), "Store.get() takes 1 .* timeout="),
        (store.set, ("k", "v", 60), "ttl=.*timeout="),
        (store.keys, ("k", 1), "timeout="),
        (group.recv_obj, (0, 5), "tag=, codec=, timeout="),
        (store.operate.settings, ("k", 5), "timeout="),
        (muster.Store, ("127.0.0.1:1", "namespace"), "namespace="),
        (muster.Server, (("127.0.0.1:0",), 1), "memory_bytes_max="),
        (lambda *given: asyncio.run(in_loop.get(*given)), ("k", 1), "timeout="),
        (lambda *given: asyncio.run(in_loop.take(*given)), ("k", 1), "timeout="),
    ]
    for call, given, text in calls:
        with pytest.raises(TypeError, match=text.replace("()", r"\(\)")):
            call(*given)
    assert inspect.iscoroutinefunction(in_loop.get)
    assert "timeout" in inspect.signature(store.get).parameters


def test_a_buffer_of_addresses_is_refused(store: muster.Store) -> None:
    np: Any = pytest.importorskip("numpy")
    objects = np.array([{"a": 1}, None], dtype=object)
    named = np.zeros(2, dtype=[("number", "i8"), ("what", object)])
    dated = np.zeros(2, dtype=[("what", object), ("day", "M8[s]")])  # which buffers cannot say
    kinds: Any = (ctypes.py_object, ctypes.c_void_p, ctypes.c_wchar_p, ctypes.POINTER(ctypes.c_int))
    pointers = [(kind * 2)() for kind in kinds]
    for value in (objects, memoryview(objects), named, dated, *pointers):
        calls: list[Callable[[], object]] = [
            lambda: store.set("k", value), lambda: store.set(value, "v"),
            lambda: store.multi_set({"k": value}), lambda: store.compare_set("k", None, value),
            lambda: store.append("k", value), lambda: store.queue_push("q", value),
        ]
        for call in calls:
            with pytest.raises(TypeError, match="objects or pointers"):
                call()
    group = muster.StatelessProcessGroup(store, "g", 0, 1)
    with pytest.raises(TypeError, match="objects or pointers"):
        group.send_obj(objects, 0, codec=muster.RAW)
    assert not store.exists("k") and store.queue_length("q") == 0


def test_pointers_that_a_format_does_not_tell_are_refused(store: muster.Store) -> None:
    class Packed(ctypes.Structure):
        _pack_ = 1
        _fields_ = [("letter", ctypes.c_char), ("place", ctypes.c_void_p)]

    class Either(ctypes.Union):
        _fields_ = [("number", ctypes.c_long), ("place", ctypes.POINTER(ctypes.c_int))]

    class Within(ctypes.Union):
        _fields_ = [("all", Packed * 2)]

    class Numbers(ctypes.Union):
        _fields_ = [("number", ctypes.c_long), ("float", ctypes.c_double * 2)]

    for value in (Packed(), Either(), Within(), (Either * 2)(), memoryview(Either())):
        with pytest.raises(TypeError, match="objects or pointers"):
            store.set("k", value)  # type: ignore[arg-type]
    store.set("k", Numbers(5))
    assert store.get("k") == bytes(Numbers(5))


class Indexed:
    def __index__(self) -> int:
        return 4


def test_numbers_are_integers_or_refused(store: muster.Store, namespace: str) -> None:
    group = muster.StatelessProcessGroup(store, "scalars", 0, 1)
    uses: list[Callable[[Any], object]] = [
        lambda one: store.add("n", one), lambda one: store.list("n", one),
        lambda one: group.send_obj(1, one), lambda one: group.recv_obj(one, timeout=0),
        lambda one: group.send_obj(1, 0, tag=one), lambda one: group.broadcast_obj(1, one),
        lambda one: group.regroup(new_size=one), lambda one: group.regroup(min_size=one),
        lambda one: muster.StatelessProcessGroup(store, "none", one, 1),
        lambda one: muster.StatelessProcessGroup(store, "none", 0, one),
    ]
    for use in uses:
        for wrong in (Decimal("1.9"), Fraction(19, 10), 1.0, "0", None, b"1"):
            with pytest.raises(TypeError, match="an int, not"):
                use(wrong)
        for large in (2**64, -(2**63) - 1):
            with pytest.raises(muster.InvalidArgument, match="an integer from"):
                use(large)
    with pytest.raises(muster.InvalidArgument, match="tag"):
        group.send_obj(1, 0, tag=-1)
    assert store.add("n", Indexed()) == 4  # type: ignore[arg-type]
    assert store.add("n", True) == 5


def test_options_of_another_type_are_refused_by_name(store: muster.Store, address: str) -> None:
    other: Any = "no"
    with pytest.raises(TypeError, match="only_if_absent"):
        store.set("k", "v", only_if_absent=other)
    for run in (None, 5):
        with pytest.raises(TypeError, match="run"):
            muster.Store(address, run=run)  # type: ignore[arg-type]
    store.set("k", "v", timeout=10**400)
    with pytest.raises(ValueError, match="not negative"):
        store.set("k", "v", timeout=-(10**400))


def test_handles_have_weak_references(store: muster.Store) -> None:
    group = muster.StatelessProcessGroup(store, "weak", 0, 1)
    with muster.Server() as server, group.watch(print) as watch:
        for one in (server, watch, group, store):
            assert weakref.ref(one)() is one


def test_a_buffer_of_numbers_is_its_bytes(store: muster.Store) -> None:
    np: Any = pytest.importorskip("numpy")
    for value in (
        np.arange(6.0).reshape(2, 3), np.zeros(2, dtype=[("Offset", "c16"), ("P", "U3")]),
        np.zeros((), dtype="M8[s]"), (ctypes.c_double * 2)(1, 2), np.zeros(0),
    ):
        store.set("k", value)
        given = value.tobytes() if isinstance(value, np.ndarray) else bytes(value)
        assert store.get("k") == given
    with pytest.raises(BufferError, match="contiguous"):
        store.set("k", np.zeros((2, 3)).T)


def test_times_are_seconds_or_timedeltas(store: muster.Store) -> None:
    store.set("k", b"v", ttl=timedelta(hours=1))
    assert 3590 < (store.list("k").keys[0].ttl or 0) <= 3600
    store.touch("k", 7.5)
    assert 6 < (store.list("k").keys[0].ttl or 0) <= 7.5
    store.touch("k", None)
    assert store.list("k").keys[0].ttl is None
    with pytest.raises(muster.TimedOut) as raised:
        store.get("nobody sets it", timeout=timedelta(milliseconds=20))
    assert isinstance(raised.value, TimeoutError)
    assert raised.value.operation == "get"
    assert raised.value.elapsed >= 0.02


def test_a_get_waits_for_another_thread(store: muster.Store) -> None:
    setter = threading.Timer(0.05, store.set, ("late", b"v"))
    setter.start()
    assert store.get("late", timeout=20) == b"v"
    setter.join()
    assert store.take("late") == b"v"
    with pytest.raises(muster.NotFound) as raised:
        store.take("late", timeout=0)
    assert raised.value.code == "not_found"
    assert isinstance(raised.value, LookupError)


def test_queues(store: muster.Store) -> None:
    assert store.queue_length("q") == 0
    with pytest.raises(muster.NotFound) as raised:
        store.queue_pop("q", timeout=0)
    assert raised.value.operation == "queue_pop"
    assert [store.queue_push("q", "one"), store.queue_push("q", b"\0\xff")] == [1, 2]
    assert store.queue_length("q") == 2
    assert not store.exists("q")
    assert [store.queue_pop("q"), store.queue_pop("q", timeout=0)] == [b"one", b"\0\xff"]
    with pytest.raises(muster.TimedOut) as late:
        store.queue_pop("q", timeout=0.02)
    assert late.value.happened == "no"


def test_each_item_is_popped_once(store: muster.Store, address: str, namespace: str) -> None:
    popped: list[bytes] = []

    def pop() -> None:
        with muster.Store(address, namespace=namespace) as other:
            popped.extend(other.queue_pop("q", timeout=20) for _ in range(20))

    threads = [threading.Thread(target=pop) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(80):
        store.queue_push("q", str(number))
    for thread in threads:
        thread.join(20)
    assert sorted(popped, key=int) == [str(number).encode() for number in range(80)]
    assert store.queue_length("q") == 0


def test_numbers(store: muster.Store) -> None:
    assert store.add("n") == 1
    assert store.add("n", -5) == -4
    store.set("n", "x")
    with pytest.raises(muster.NotANumber) as raised:
        store.add("n")
    assert raised.value.happened == "no"
    assert not raised.value.in_doubt


def test_compare_set_and_append(store: muster.Store) -> None:
    assert store.compare_set("k", None, "a") == (True, None)
    assert store.compare_set("k", None, "b") == (False, b"a")
    assert store.compare_set("k", "a", "c", ttl=60).applied
    assert store.append("k", b"de") == 3
    assert store.get("k") == b"cde"


def test_many_keys(store: muster.Store) -> None:
    store.multi_set({"a": b"1", "b": b"2"})
    store.multi_set([(f"k{index}", b"v") for index in range(3)], ttl=60)
    assert store.multi_get(["a", "x", "b"]) == [b"1", None, b"2"]
    assert store.multi_exists(key for key in ("a", "x")) == [True, False]
    store.wait(["a", "b"], timeout=0)
    assert sorted(info.key for info in store.keys("k")) == [b"k0", b"k1", b"k2"]
    assert store.multi_remove(["a", "b", "x"]) == 2


def test_who_asks_is_told(store: muster.Store, namespace: str) -> None:
    assert int(store.status()["sessions_count"]) >= 1
    assert store.whoami().identity == ""
    assert store.limits.value_bytes_max == 16 << 20
    assert store.process.pid > 0
    assert len(store.process.id) == 32
    assert store.incarnation != 0


def test_what_the_server_knows_can_be_looked_at(address: str, namespace: str) -> None:
    with muster.Store(address, namespace=namespace) as store:
        store.set("k", b"v")
        group = muster.StatelessProcessGroup(store, "g", 0, 1)
        assert "sessions_count" in store.inspect("status")
        with pytest.raises(ValueError, match="history; not 'why'"):
            store.inspect("why")  # type: ignore[arg-type]
        assert [session["pid"] for session in store.inspect("sessions")] == [store.process.pid]
        assert [each["group"] for each in store.inspect("groups")] == ["g"]
        assert store.inspect("waiters") == store.inspect("objects") == []
        assert namespace in [each["namespace"] for each in store.inspect("namespaces")]
        assert store.inspect("group", "g")["world_size"] == 1
        with pytest.raises(muster.NotFound):
            store.inspect("group", "nobody's")
        group.leave()
        history = store.inspect("history", "g")
        assert [event["what"] for event in history["events"]] == ["formed", "rank_left", "ended"]
        assert history["known_for_s"] > 0


def test_a_supervisor_declares_a_process_dead(
    address: str, store: muster.Store, namespace: str, process: Callable[..., Popen[str]]
) -> None:
    victim = process("""
        store = muster.Store(address, namespace="victims")
        store.set("k", "v")
        print(store.process.id, flush=True)
        try:
            store.get("never", timeout=60)
        except muster.Fenced as fenced:
            print(fenced.detail, flush=True)
    """)
    assert victim.stdout is not None
    name = victim.stdout.readline().strip()
    with muster.Store(address, role="supervisor", namespace="victims") as supervisor:
        supervisor.report_dead(name, "its node is gone")
        assert "its node is gone" in victim.stdout.readline()
        assert victim.wait(20) == 0
        with pytest.raises(muster.InvalidArgument):
            supervisor.drop_namespace("victims")  # its own
    with muster.Store(address, role="supervisor", namespace=namespace) as supervisor:
        assert supervisor.drop_namespace("victims") == 1
        with pytest.raises(ValueError, match="32 hexadecimal digits"):
            supervisor.report_dead("x", "why")
        with pytest.raises(muster.NotFound):
            supervisor.report_dead("0" * 31 + "1", "why")
    with pytest.raises(muster.PermissionDenied) as raised:
        store.report_dead(store.process.id, "why")
    assert isinstance(raised.value, PermissionError)


def test_a_closed_store_says_so(address: str) -> None:
    store = muster.Store(address)
    store.close()
    with pytest.raises(muster.Closed):
        store.get("k")


def test_a_run_is_removed_with_its_last_session(address: str, namespace: str) -> None:
    def connect(name: str = "", lifetime: float | None = 0) -> muster.Store:
        return muster.Store(
            address, namespace=namespace, namespace_idle_lifetime=lifetime, run=name)

    with connect() as first:
        first.set("address", b"of the first run")
        with connect() as restarted:
            assert restarted.get("address") == b"of the first run"
    with connect("1", None) as next_run:
        assert not next_run.exists("address")
        entered = threading.Event()

        def enter() -> None:
            connect("2").close()
            entered.set()

        waits = threading.Thread(target=enter)
        waits.start()
        assert not entered.wait(0.2)
    assert entered.wait(10)
    waits.join()

    with pytest.raises(muster.Closed, match="has ended"):
        for _ in range(20):  # its session may have to end first
            connect("3", 60).close()
    connect("4").close()


def test_nobody_listens() -> None:
    with pytest.raises(muster.Unavailable) as raised:
        muster.Store("unix:@muster-nobody", connect_timeout=5, wait_for_server=0)
    assert isinstance(raised.value, ConnectionError)
    with pytest.raises(ValueError, match="role"):
        muster.Store("unix:@muster-nobody", role="king")  # type: ignore[arg-type]


def test_cancel_ends_the_calls_of_other_threads(store: muster.Store) -> None:
    ended: list[BaseException] = []

    def wait() -> None:
        try:
            store.take("nobody sets it", timeout=60)
        except muster.MusterError as error:
            ended.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    while not ended:
        store.cancel()
        thread.join(0.01)
    thread.join(20)
    assert type(ended[0]) is muster.Cancelled


def test_a_server_in_this_process() -> None:
    with muster.Server(heartbeat=0.5) as server:
        thread = muster.IoThread("shared")
        with muster.Store(server.addresses[0], io_thread=thread) as store:
            store.set("k", "v")
            assert store.incarnation == server.incarnation
        assert repr(server) == f"<muster.Server at {server.addresses[0]}>"
    server.stop()
    assert repr(server).endswith(", stopped>")
    with pytest.raises(muster.PermissionDenied):
        muster.Server("0.0.0.0:0")


def test_calls_without_keys_do_nothing(store: muster.Store) -> None:
    store.set("k", "v")
    assert store.multi_get([]) == []
    assert store.multi_exists([]) == []
    assert store.multi_remove([]) == 0
    store.multi_set({})
    store.wait([])
    assert [info.key for info in store.keys()] == [b"k"]


def test_a_store_may_be_closed_twice(address: str) -> None:
    with muster.Store(address) as store:
        assert repr(store) == f"<muster.Store at {address}>"
        store.close()
    store.close()
    assert repr(store) == f"<muster.Store at {address}, closed>"
    with pytest.raises(muster.Closed):
        store.get("k")


def test_the_package_has_its_version() -> None:
    done = subprocess.run(
        [os.environ["MUSTERD"], "--version"], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split()[1] == muster.__version__


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_musterd_gives_back_the_memory_of_removed_keys() -> None:
    server = Popen(
        [os.environ["MUSTERD"], "--listen", "127.0.0.1:0", "--log-level", "warning"],
        stdout=subprocess.PIPE, text=True,
    )
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        if "libasan" in Path(f"/proc/{server.pid}/maps").read_text():
            pytest.skip("with a sanitizer of memory, what is freed stays in quarantine")
        with muster.Store(address) as store:
            # Small values, between which some stay: so the C library keeps what is freed.
            names = [f"k{number}" for number in range(20_000)]
            for first in range(0, len(names), 1000):
                store.multi_set({name: b"v" * 4000 for name in names[first : first + 1000]})
            full = resident_bytes(server.pid)
            assert full > 80_000_000
            for first in range(0, len(names), 1000):
                store.multi_remove(names[first : first + 999])
            deadline = time.monotonic() + 30
            while resident_bytes(server.pid) > full / 2:
                assert time.monotonic() < deadline, "the memory stays the server's"
                time.sleep(0.01)
    finally:
        server.kill()
        server.communicate(timeout=60)
