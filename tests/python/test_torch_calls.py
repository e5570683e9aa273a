"""muster.torch.Store by itself: what torch calls, from Python and from C++, and its errors."""

from __future__ import annotations

import copy
import ctypes
import functools
import gc
import os
import pickle
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import muster
import public_calls
import pytest

torch = pytest.importorskip("torch", reason="there is no torch (Debian: python3-torch)")
dist = torch.distributed

from muster.torch import Store  # noqa: E402
from muster.torch._errors import (  # noqa: E402
    NAMES_THE_KEYS,
    NetworkError,
    QueueEmptyError,
    StoreError,
)

PATIENCE = 30.0
SHORT = timedelta(milliseconds=200)
Make = Callable[..., Store]
has_extended_api = hasattr(dist.PrefixStore, "multi_get")
extended = pytest.mark.skipif(not has_extended_api, reason="this torch has no such call")


@pytest.fixture
def make(address: str, namespace: str) -> Iterator[Make]:
    """Connects stores of one namespace, which end with the test."""
    made = []

    def connect(**options: Any) -> Store:
        given: dict[str, Any] = {"timeout": PATIENCE, **options}
        one = Store(address, namespace=namespace, **given)
        made.append(one)
        return one

    yield connect
    for one in made:
        one.close()


def test_stores_of_a_process_share_a_thread_also_after_a_fork(make: Make, address: str) -> None:
    def threads() -> int:
        return len(os.listdir("/proc/self/task"))

    make()
    before = threads()
    stores = [make() for _ in range(8)]
    assert threads() == before
    stores[0].set("a", "1")
    assert stores[-1].get("a") == b"1"
    child = os.fork()
    if child == 0:
        try:
            store = Store(address, namespace="of a child", timeout=PATIENCE)
            store.set("a", "2")
            os._exit(0 if store.get("a") == b"2" else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


@pytest.fixture(params=["from Python", "from C++"])
def shop(request: pytest.FixtureRequest, make: Make) -> Any:
    """A store, and the same as C++ sees it."""
    return make() if request.param == "from Python" else dist.PrefixStore("p", make())


def test_sets_and_gets(shop: Any) -> None:
    shop.set("text", "one")
    shop.set("bytes", b"\0\xff")
    shop.set("", "no key")
    assert [shop.get("text"), shop.get("bytes"), shop.get("")] == [b"one", b"\0\xff", b"no key"]
    assert [shop.add("n", 5), shop.add("n", -7)] == [5, -2]
    assert shop.get("n") == b"-2"


def test_counts_and_deletes_by_both_names(make: Make) -> None:
    store = make(rank=0, world_size=2)
    store.set("a", "1")
    store.add("b", 1)
    assert [store.num_keys(), store.getNumKeys()] == [2, 2]
    assert [store.delete_key("a"), store.deleteKey("a")] == [True, False]
    assert store.deleteKey("b")
    from_cpp = dist.PrefixStore("p", store)
    from_cpp.set("c", "1")
    assert [from_cpp.num_keys(), from_cpp.delete_key("c"), from_cpp.delete_key("c")] == [
        1, True, False,
    ]
    assert store.num_keys() == 0


def test_compares_as_torch_does(shop: Any) -> None:
    assert shop.compare_set("a", "other", "1") == b"other"
    assert shop.compare_set("a", "", "1") == b"1"
    assert shop.compare_set("a", "other", "2") == b"1"
    assert shop.compare_set("a", "1", "") == b""
    assert shop.compare_set("a", "", "3") == b"3"
    assert shop.compare_set("a", "", "4") == b"3"
    assert shop.get("a") == b"3"


def test_of_many_that_compare_one_wins(make: Make) -> None:
    store = dist.PrefixStore("p", make())
    said: list[bytes] = []
    threads = [
        threading.Thread(target=lambda me=me: said.append(store.compare_set("a", "", f"{me}")))
        for me in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(said) == 8 and len(set(said)) == 1


def test_waits_with_and_without_a_time_out(make: Make, shop: Any) -> None:
    def set_both() -> None:
        other.set("a", "1")
        other.set("b", "2")

    other = shop if isinstance(shop, Store) else dist.PrefixStore("p", make())
    thread = threading.Timer(0.1, set_both)
    thread.start()
    shop.wait(["a", "b"])
    shop.wait(["b", "a"], timedelta(seconds=PATIENCE))
    thread.join(PATIENCE)
    with pytest.raises(StoreError, match="[Tt]imeout"):
        shop.wait(["a", "missing"], SHORT)
    assert shop.add("n", 1) == 1


def test_checks(make: Make) -> None:
    store = make()
    store.set("a", "")
    assert [store.check(["a"]), store.check(["a", "b"]), store.check([])] == [True, False, True]
    if hasattr(dist.PrefixStore, "check"):
        assert not dist.PrefixStore("p", store).check(["a"])


@extended
def test_extended_calls_from_both_sides(shop: Any) -> None:
    assert shop.has_extended_api()
    shop.append("text", "one ")
    shop.append("text", b"two")
    shop.multi_set(["x", "y"], ["1", b"\xff"])
    assert shop.multi_get(["y", "text", "x"]) == [b"\xff", b"one two", b"1"]


def test_extended_calls_of_python(make: Make) -> None:
    store = make()
    threading.Timer(0.1, lambda: store.multi_set(["x", "y"], ["1", "2"])).start()
    assert store.multi_get(["y", "x"]) == [b"2", b"1"]
    assert store.multi_get([]) == []
    assert sorted(store.list_keys()) == ["x", "y"]
    store.set_timeout(SHORT)
    with pytest.raises(StoreError):
        store.multi_get(["x", "missing"])
    with pytest.raises(ValueError):
        store.multi_set(["x", "y"], ["1"])


def test_queues_of_python(make: Make) -> None:
    store, other = make(), make()
    assert store.queue_len("q") == 0
    store.queue_push("q", "one")
    store.queue_push("q", b"\xff")
    assert [other.queue_len("q"), other.check(["q"]), other.num_keys()] == [2, True, 0]
    other.wait(["q"])
    store.set("value", "")
    other.wait(["value", "q"])
    assert [other.check(["q", "value"]), other.check(["q", "neither"])] == [True, False]
    store.delete_key("value")
    assert [other.queue_pop("q"), store.queue_pop("q", False)] == [b"one", b"\xff"]
    assert store.session.queue_push("/q", "of the session") == 1
    assert store.queue_pop("q", block=True) == b"of the session"
    with pytest.raises(QueueEmptyError, match="empty"):
        store.queue_pop("q", block=False)
    store.set_timeout(SHORT)
    with pytest.raises(StoreError, match="[Tt]imeout"):
        store.queue_pop("missing")


def test_a_pop_waits_for_a_push(make: Make) -> None:
    def answer() -> None:
        store.queue_push("answers", store.queue_pop("questions") + b"!")

    store, other = make(), make()
    thread = threading.Thread(target=answer)
    thread.start()
    other.queue_push("questions", "a")
    assert other.queue_pop("answers") == b"a!"
    thread.join(PATIENCE)
    assert not thread.is_alive()


@pytest.mark.skipif(not hasattr(dist.PrefixStore, "queue_push"), reason="this torch has no queues")
def test_queues_do_not_reach_python_through_a_prefix(make: Make) -> None:
    with pytest.raises(NotImplementedError):
        dist.PrefixStore("p", make()).queue_push("q", "item")


def test_torchs_own_test_of_python_stores(make: Make) -> None:
    dist._test_python_store(make())


def test_a_clone_has_the_session_and_a_time_out_of_its_own(make: Make) -> None:
    store = make()
    clone = store.clone()
    clone.set_timeout(SHORT)
    assert store.timeout == timedelta(seconds=PATIENCE)
    assert clone.session is store.session
    waiter = threading.Thread(target=store.get, args=["a"])
    waiter.start()
    clone.set("a", "1")
    waiter.join(PATIENCE)
    assert not waiter.is_alive()


def test_a_closed_store_is_not_cloned(make: Make) -> None:
    store = make()
    assert repr(store) == f"<muster.torch.Store at {store.session.address}>"
    store.close()
    store.close()
    assert repr(store).endswith(", closed>")
    for call in (store.clone, store.num_keys):
        with pytest.raises(StoreError) as raised:
            call()
        assert type(raised.value.__cause__) is muster.Closed


def test_a_store_is_not_pickled_or_copied(make: Make) -> None:
    ways: list[Any] = [pickle.dumps, copy.copy, copy.deepcopy]
    for way in ways:
        with pytest.raises(TypeError, match="a Store cannot be pickled or copied: it is one"):
            way(make())


def test_what_is_public_names_its_keywords_and_has_types_and_docstrings() -> None:
    for name, one in public_calls.public(is_of_torch=True).items():
        public_calls.check_public(name, one)


@pytest.mark.skipif(not hasattr(dist.PrefixStore, "clone"), reason="this torch clones nothing")
def test_a_clone_that_cpp_has_made_lives(make: Make) -> None:
    clone = dist.PrefixStore("p", make()).clone()
    gc.collect()
    clone.set("a", "1")
    assert clone.get("a") == b"1"


def test_a_store_that_only_cpp_knows_lives(address: str, namespace: str) -> None:
    prefix = dist.PrefixStore("p", Store(address, namespace=namespace, timeout=PATIENCE))
    gc.collect()
    prefix.set("a", "1")
    assert prefix.get("a") == b"1"
    prefix.underlying_store.close()
    with pytest.raises(RuntimeError):
        prefix.get("a")


def test_a_time_out_is_torchs(shop: Any) -> None:
    shop.set_timeout(SHORT)
    began = time.monotonic()
    with pytest.raises(StoreError) as raised:
        shop.get("missing")
    assert 0.15 < time.monotonic() - began < 10
    wanted = "wait timeout after 200ms, keys: /" if NAMES_THE_KEYS else "Socket Timeout"
    assert str(raised.value).startswith(wanted)
    assert isinstance(raised.value.__cause__, muster.TimedOut)
    shop.set("missing", "1")
    assert shop.get("missing") == b"1"


def test_a_time_out_of_zero_does_not_wait(make: Make) -> None:
    store = make()
    store.set_timeout(timedelta(0))
    with pytest.raises(StoreError):
        store.get("missing")
    with pytest.raises(StoreError):
        store.wait(["missing"], timedelta(0))
    store.set("a", "1")
    assert store.get("a") == b"1"


def test_a_time_out_says_who_is_missing(make: Make) -> None:
    store = make(rank=1, world_size=5)
    make(rank=3, world_size=5)
    with pytest.raises(StoreError, match="; ranks 0, 2, 4 have not come$"):
        store.wait(["a"], SHORT)
    for rank in (0, 2, 4):
        make(rank=rank, world_size=5)
    with pytest.raises(StoreError, match="; all 5 ranks are there$"):
        dist.PrefixStore("p", store).wait(["a"], SHORT)


def test_a_time_out_without_ranks_names_nobody(make: Make) -> None:
    with pytest.raises(StoreError) as raised:
        make(world_size=2).wait(["a"], SHORT)
    assert "rank" not in str(raised.value)


def test_a_time_out_says_who_died_and_who_left(
    make: Make, namespace: str, process: Callable[..., subprocess.Popen[str]]
) -> None:
    store = make(rank=0, world_size=3)
    program = f"""
        from muster.torch import Store
        rank = int(sys.argv[1])
        store = Store(address, namespace={namespace!r}, rank=rank, world_size=3)
        store.set(f"ready{{rank}}", "")
        if rank == 1:
            sys.stdin.read()
    """
    dies, leaves = process(program, "1"), process(program, "2")
    store.wait(["ready1", "ready2"])
    assert leaves.wait(PATIENCE) == 0
    dies.kill()
    until = time.monotonic() + PATIENCE
    while store.session.exists("ranks/1/here"):  # its grace; there is nothing to be awaited
        assert time.monotonic() < until
        time.sleep(0.05)
    with pytest.raises(StoreError) as raised:
        store.wait(["a"], SHORT)
    said = str(raised.value)
    assert f"; rank 1 ({store.session.process.host}, pid {dies.pid}) died; rank 2 (" in said
    assert said.endswith(f"pid {leaves.pid}) has left")


def test_many_missing_ranks_are_counted(make: Make) -> None:
    with pytest.raises(StoreError, match=r"ranks 0, 1, 2, 3, 4, 5, 6, 7 and 4091 more have not"):
        make(rank=4099, world_size=4100).wait(["a"], SHORT)


def test_there_is_no_rank_beyond_the_world(make: Make) -> None:
    with pytest.raises(ValueError, match="no rank 2 of 2"):
        make(rank=2, world_size=2)
    with pytest.raises(ValueError):
        make(rank=-1)
    assert make(rank=7).add("n", 1) == 1


def test_other_errors_are_torchs_too(make: Make) -> None:
    store = make()
    store.set("word", "muster")
    with pytest.raises(StoreError) as raised:
        store.add("word", 1)
    assert isinstance(raised.value.__cause__, muster.NotANumber)
    store.close()
    with pytest.raises(RuntimeError):
        dist.PrefixStore("p", store).get("word")


def test_a_server_that_is_gone_is_an_error_of_the_network(namespace: str) -> None:
    with pytest.raises(NetworkError):
        Store("unix:@muster-nobody-torch", namespace=namespace, timeout=0.3)
    with muster.Server("127.0.0.1:0", session_timeout=5) as server:
        store = Store(server.addresses[0], namespace=namespace, timeout=5)
    with pytest.raises(RuntimeError):
        store.set("a", "1")
    store.close()


def in_foreign_thread(work: Callable[[], None]) -> Callable[[], None]:
    """Runs `work` in a thread that C has started, as a backend's are. Returns what joins it."""
    libc = ctypes.CDLL(None)
    of_thread = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)

    def run(_: object) -> None:
        work()

    routine, thread = of_thread(run), ctypes.c_ulong()
    assert libc.pthread_create(ctypes.byref(thread), None, routine, None) == 0

    def join() -> None:
        assert libc.pthread_join(thread, None) == 0
        assert routine  # it has to live until here

    return join


def test_a_backends_thread_waits_while_the_main_thread_holds_the_gil(
    make: Make, namespace: str, process: Callable[..., subprocess.Popen[str]]
) -> None:
    prefix = dist.PrefixStore("p", make())
    found: list[bytes] = []
    join = in_foreign_thread(lambda: found.append(prefix.get("a")))
    setter = process(f"""
        with muster.Store(address, namespace={namespace!r}) as store:
            store.get("/go")
            store.set("/p/a", "it")
    """)
    make().set("go", "")
    ctypes.PyDLL(None).usleep(700_000)  # without releasing the GIL, while the key comes
    join()
    assert found == [b"it"]
    assert setter.wait(PATIENCE) == 0


def test_many_threads_wait_at_one_store(make: Make) -> None:
    store = dist.PrefixStore("p", make())
    found: list[bytes] = []
    joins = [
        in_foreign_thread(functools.partial(lambda me: found.append(store.get(me)), f"{me}"))
        for me in range(16)
    ]
    for me in reversed(range(16)):
        store.set(f"{me}", f"{me}")
    for join in joins:
        join()
    assert sorted(found, key=int) == [b"%d" % me for me in range(16)]


def test_a_tcpstore_at_a_port_has_the_same_keys(namespace: str, tmp_path: Path) -> None:
    port_file = tmp_path / "ports"
    musterd = subprocess.Popen(
        [os.environ["MUSTERD"], "--listen", "127.0.0.1:0", "--tcpstore",
         f"127.0.0.1:0={namespace}", "--port-file", str(port_file), "--log-level", "error",
         "--tcpstore-dialect", dialect()],
    )
    try:
        until = time.monotonic() + PATIENCE
        while not port_file.exists():
            assert musterd.poll() is None and time.monotonic() < until
            time.sleep(0.01)
        own, of_tcpstore = port_file.read_text().split()
        with Store(f"127.0.0.1:{own}", namespace=namespace, timeout=PATIENCE) as store:
            other = dist.TCPStore(
                "127.0.0.1", int(of_tcpstore), None, False, timedelta(seconds=PATIENCE),
                wait_for_workers=False,
            )
            other.set("a", "1")
            assert store.get("a") == b"1"
            dist.PrefixStore("p", store).set("b", "2")
            assert dist.PrefixStore("p", other).get("b") == b"2"
            assert other.add("n", 1) + store.add("n", 1) == 3
    finally:
        musterd.terminate()
        musterd.wait(PATIENCE)


def dialect() -> str:
    """What this torch's TCPStore speaks: docs/tcpstore.md."""
    version = tuple(map(int, torch.__version__.split(".")[:2]))
    return "first" if version < (2, 1) else "second" if version < (2, 2) else "newest"


@pytest.mark.parametrize("value", [5, True, 1.5, None, torch.ones(1), (1, 2)])
def test_what_is_no_text_is_refused(make: Make, value: Any) -> None:
    store = make()
    calls: list[Callable[[], object]] = [
        lambda: store.set("k", value), lambda: store.append("k", value),
        lambda: store.queue_push("k", value), lambda: store.multi_set(["k"], [value]),
        lambda: store.compare_set("k", "", value),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="a value is str or bytes, not"):
            call()
    assert not store.check(["k"])


def test_wrong_arguments_leave_no_session(address: str, namespace: str) -> None:
    wrong: list[dict[str, Any]] = [
        {"rank": 0.5}, {"rank": "0"}, {"world_size": "x"}, {"timeout": None}, {"timeout": "1"},
    ]
    for given in wrong:
        with pytest.raises(TypeError, match="timeout: " if "timeout" in given else ""):
            Store(address, namespace=namespace, **given)
    with Store(address, namespace=namespace, timeout=float("inf")) as store:
        assert store.timeout == timedelta(days=30)
        assert len(store.session.inspect("sessions")) == 1
        keys: Any = "ab"
        calls: list[Callable[[Any], object]] = [store.check, store.wait]
        for call in calls:
            with pytest.raises(TypeError, match="keys: a sequence of them, not str"):
                call(keys)
