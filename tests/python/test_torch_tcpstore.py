"""muster.torch.patch_tcpstore: torch's TCPStore, served by Muster in the process of the master."""

from __future__ import annotations

import gc
import os
import socket
import subprocess
import sys
import textwrap
import threading
import types
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import muster
import pytest

torch = pytest.importorskip("torch", reason="there is no torch (Debian: python3-torch)")
dist = torch.distributed

from muster.torch import _tcpstore, patch_tcpstore  # noqa: E402
from muster.torch._errors import NetworkError, StoreError  # noqa: E402

PATIENCE = 60.0
SHORT = timedelta(seconds=1)
HOST = "127.0.0.1"
Start = Callable[..., "subprocess.Popen[str]"]
torchs = types.SimpleNamespace(TCPStore=dist.TCPStore)  # no module, so no patch reaches it


@pytest.fixture(autouse=True)
def patched() -> Iterator[Any]:
    """Every test has a patch, and leaves no server."""
    with patch_tcpstore() as patch:
        yield patch
    gc.collect()
    for served in list(_tcpstore._servers.values()):
        assert served.end_if_over(), "a server stays without a store"
    assert not _tcpstore._servers


def servers() -> list[int]:
    return list(_tcpstore._servers)


def client_at(port: int, **options: Any) -> Any:
    """A client of torch's own, as in a process that is not patched."""
    return torchs.TCPStore(HOST, port, None, False, timedelta(seconds=PATIENCE), False, **options)


def is_free(port: int) -> bool:
    try:
        socket.create_server((HOST, port)).close()
    except OSError:
        return False
    return True


# The class, and where it is.


def test_every_module_has_it_until_the_patch_is_undone(patched: Any, tmp_path: Path) -> None:
    before = types.ModuleType("before")
    vars(before)["Renamed"] = torchs.TCPStore
    sys.modules["before"] = before
    patched.undo()
    (tmp_path / "imported_later.py").write_text("from torch.distributed import TCPStore as Later\n")
    sys.path.insert(0, str(tmp_path))
    try:
        rendezvous = sys.modules["torch.distributed.rendezvous"]
        native = sys.modules["torch._C._distributed_c10d"]
        assert dist.TCPStore is torchs.TCPStore
        patch = patch_tcpstore()
        import imported_later  # type: ignore[import]

        places = [
            dist.TCPStore, vars(rendezvous)["TCPStore"], vars(native)["TCPStore"],
            vars(before)["Renamed"], imported_later.Later,
        ]
        assert all(place is _tcpstore.TCPStore for place in places)
        assert issubclass(dist.TCPStore, torchs.TCPStore)
        patch_tcpstore().undo()  # has found nothing to do
        assert dist.TCPStore is _tcpstore.TCPStore
        patch.undo()
        assert vars(before)["Renamed"] is imported_later.Later is torchs.TCPStore
        assert vars(rendezvous)["TCPStore"] is dist.TCPStore is torchs.TCPStore
    finally:
        sys.path.remove(str(tmp_path))
        for name in ("before", "imported_later"):
            sys.modules.pop(name, None)


def test_stores_that_cpp_or_torch_has_made_are_tcpstores() -> None:
    store = dist.TCPStore(HOST, 0, 1, True)
    own = client_at(store.port)
    assert isinstance(store, dist.TCPStore) and isinstance(own, dist.TCPStore)
    assert isinstance(store, torchs.TCPStore) and isinstance(store, dist.Store)
    assert not isinstance(dist.HashStore(), dist.TCPStore)
    prefix = dist.PrefixStore("p", own)
    if hasattr(prefix, "underlying_store"):
        assert isinstance(prefix.underlying_store, dist.TCPStore)
    if hasattr(own, "clone"):
        assert isinstance(own.clone(), dist.TCPStore)


def test_it_can_be_derived_from() -> None:
    class Counting(dist.TCPStore):  # type: ignore[misc, name-defined]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.sets_count = 0

        def set(self, key: str, value: str) -> None:
            self.sets_count += 1
            super().set(key, value)

    store = Counting(HOST, 0, is_master=True)
    store.set("a", "1")
    assert [store.sets_count, client_at(store.port).get("a")] == [1, b"1"]
    assert isinstance(store, Counting) and not isinstance(client_at(store.port), Counting)


# Its arguments.


def test_the_arguments_are_torchs_by_position_and_by_name() -> None:
    second = timedelta(seconds=PATIENCE)
    by_position = dist.TCPStore(HOST, 0, 1, True, second, True, True, None, False)
    port = by_position.port
    assert servers() == [port] and by_position.host == HOST
    by_name = dist.TCPStore(
        host_name=HOST, port=0, world_size=None, is_master=True, timeout=second,
        wait_for_workers=False, multi_tenant=False, master_listen_fd=None, use_libuv=True,
    )
    assert sorted(servers()) == sorted([port, by_name.port])
    clients = [
        dist.TCPStore(HOST, port, None, False, wait_for_workers=False),
        dist.TCPStore(HOST, port, -1, False, second),
        dist.TCPStore(HOST, port, 5, False, second, True, True, None, False),
    ]
    by_position.set("a", "1")
    assert [one.get("a") for one in clients] == [b"1"] * 3
    with pytest.raises(TypeError):
        dist.TCPStore(HOST, 0, unknown=1)
    assert len(servers()) == 2


@pytest.mark.parametrize("wrong", [
    {"host_name": None}, {"host_name": 1}, {"port": "0"}, {"port": 1.5}, {"port": -1},
    {"port": 1 << 16}, {"port": None}, {"world_size": "2"}, {"world_size": 1.5},
    {"timeout": "1"}, {"timeout": None}, {"timeout": float("nan")}, {"master_listen_fd": "3"},
    {"master_listen_fd": 999}, {"master_listen_fd": -1}, {"host_name": "no.such.host.invalid"},
    {"host_name": ""},
], ids=str)
def test_wrong_arguments_leave_nothing(wrong: dict[str, Any]) -> None:
    given: dict[str, Any] = {"host_name": HOST, "port": 0, "world_size": 1, "is_master": True}
    with pytest.raises((TypeError, ValueError, OSError, RuntimeError)) as raised:
        dist.TCPStore(**{**given, **wrong})
    assert servers() == [] and not isinstance(raised.value, muster.MusterError)
    said = str(raised.value)
    if not isinstance(raised.value, TypeError):  # which is pybind11's of torch's own class
        assert "C++" not in said and "arg0" not in said


@pytest.mark.parametrize("patience", [0, -1, 1e-6])
def test_a_time_that_is_over_counts_the_workers(patience: float) -> None:
    with pytest.raises(StoreError, match="1/2 clients joined"):
        dist.TCPStore(HOST, 0, 2, True, timedelta(seconds=patience))
    assert servers() == []


def test_what_is_no_server_socket_is_refused_as_torch_does() -> None:
    with open(os.devnull) as file, socket.socket(socket.AF_UNIX) as unbound:
        before = os.listdir("/proc/self/fd")
        for wrong in (file.fileno(), unbound.fileno(), 999, -1, 1 << 40):
            with pytest.raises(NetworkError, match=f"master_listen_fd={wrong} cannot listen: "):
                dist.TCPStore(HOST, 0, 1, True, master_listen_fd=wrong)
        assert (servers(), os.listdir("/proc/self/fd")) == ([], before)


def test_a_master_waits_for_its_workers(process: Start) -> None:
    port = reserved()
    workers = process("""
        import torch.distributed as dist
        workers = [dist.TCPStore("127.0.0.1", int(sys.argv[1]), 3, False) for _ in range(2)]
        sys.stdin.read()
    """, str(port))
    store = dist.TCPStore(HOST, port, 3, True, timedelta(seconds=PATIENCE))
    assert store.num_keys() == 1  # torch's, at which all have counted themselves
    workers.communicate(timeout=PATIENCE)
    assert workers.returncode == 0


def test_workers_that_do_not_come_are_counted_and_nothing_stays() -> None:
    port = reserved()
    with pytest.raises(StoreError, match="1/2 clients joined"):
        dist.TCPStore(HOST, port, 2, True, SHORT)
    assert servers() == [] and is_free(port)


def reserved() -> int:
    """A port that is free, though nothing holds it: what a TCPStore is told."""
    with socket.create_server((HOST, 0)) as one:
        return int(one.getsockname()[1])


def test_a_port_that_somebody_has_is_refused_in_torchs_words() -> None:
    store = dist.TCPStore(HOST, 0, 1, True)
    with pytest.raises(NetworkError, match="(?s)failed to listen.*EADDRINUSE.*already in use"):
        dist.TCPStore(HOST, store.port, 1, True)
    with socket.create_server((HOST, 0)) as other, pytest.raises(NetworkError, match="EADDRINUSE"):
        dist.TCPStore(HOST, other.getsockname()[1], 1, True, multi_tenant=True)
    store.set("a", "1")
    assert store.get("a") == b"1"


def test_a_rank_of_torchruns_does_not_serve_where_the_agent_does(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    agents = torchs.TCPStore(HOST, 0, 1, True)
    agents.set("a", "1")
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    with pytest.raises(NetworkError, match="EADDRINUSE"):
        dist.TCPStore(HOST, agents.port, 1, True)
    monkeypatch.setenv("MASTER_PORT", str(agents.port))
    assert dist.TCPStore(HOST, agents.port, None, True).get("a") == b"1"
    assert servers() == []


def test_other_machines_must_be_allowed(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(StoreError, match="allow_unauthenticated=True"):
        dist.TCPStore("0.0.0.0", 0, 1, True)
    with socket.socket() as everywhere:
        everywhere.bind(("0.0.0.0", 0))
        with pytest.raises(StoreError, match="allow_unauthenticated=True"):
            dist.TCPStore(HOST, 0, 1, True, master_listen_fd=everywhere.fileno())
        assert everywhere.getsockname()[1] != 0  # it is still the caller's
    assert servers() == []
    with patch_tcpstore(allow_unauthenticated=True):
        store = dist.TCPStore("0.0.0.0", 0, 1, True)
        socket.create_connection(("127.0.0.2", store.port), PATIENCE).close()
    kept = dist.TCPStore(HOST, 0, 1, True)
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.2", kept.port), PATIENCE)
    assert not [one for one in caplog.records if "which only processes" in one.message]


def test_a_host_name_that_is_loopback_here_is_mentioned(
    caplog: pytest.LogCaptureFixture
) -> None:
    host = "127.1"  # which is looked up, and has one address everywhere
    store = dist.TCPStore(host, 0, 1, True)
    assert store.port in servers()
    assert [one for one in caplog.records if "which only processes" in one.message]


# How long the server lives.


def test_the_port_is_free_when_the_store_is_gone() -> None:
    store = dist.TCPStore(HOST, 0, 1, True)
    port = store.port
    del store
    assert is_free(port) and servers() == []
    again = dist.TCPStore(HOST, port, 1, True)
    assert [again.port, again.num_keys()] == [port, 1]


def test_a_store_that_only_cpp_has_keeps_its_server() -> None:
    prefix = dist.PrefixStore("p", dist.TCPStore(HOST, 0, 1, True))
    gc.collect()
    (port,) = servers()
    prefix.set("a", "1")
    assert prefix.get("a") == b"1"
    with pytest.raises(NetworkError):
        dist.TCPStore(HOST, port, 1, True)
    shared = client_at(port)
    del prefix
    gc.collect()
    assert shared.get("p/a") == b"1"  # a client of this process
    del shared
    _tcpstore._servers[port].end_if_over()
    assert is_free(port)


def test_a_server_that_nothing_asks_for_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tcpstore, "LOOK_S", 0.01)
    before = set(threading.enumerate())
    prefix = dist.PrefixStore("p", dist.TCPStore(HOST, 0, 1, True))
    gc.collect()
    (port,) = servers()
    (look,) = set(threading.enumerate()) - before
    prefix.set("a", "1")
    del prefix
    look.join(PATIENCE)
    assert not look.is_alive() and is_free(port)


def test_stores_of_many_tenants_share_a_server() -> None:
    first = dist.TCPStore(HOST, 0, 1, True, multi_tenant=True)
    port = first.port
    second = dist.TCPStore(HOST, port, 1, True, multi_tenant=True)
    assert servers() == [port]
    first.set("a", "1")
    del first
    gc.collect()
    assert second.get("a") == b"1"
    with pytest.raises(NetworkError):
        dist.TCPStore(HOST, port, 1, True)
    del second
    assert dist.TCPStore(HOST, port, 1, True, multi_tenant=True).num_keys() == 1


@pytest.mark.parametrize("listens", [True, False])
def test_a_socket_that_was_given_is_the_stores_until_its_end(listens: bool) -> None:
    with socket.socket() as given:
        given.bind((HOST, 0))
        if listens:
            given.listen()
        port, descriptor = given.getsockname()[1], given.detach()
    store = dist.TCPStore(HOST, port, 1, True, master_listen_fd=descriptor)
    assert store.port == port
    store.set("a", "1")
    assert client_at(port).get("a") == b"1"
    os.fstat(descriptor)
    del store
    with pytest.raises(OSError):
        os.fstat(descriptor)
    assert is_free(port)


def test_a_socket_that_its_program_closes_as_well_closes_nothing_else() -> None:
    """As copies of vLLM's ``create`` do, which keep the socket's object."""
    given = socket.create_server((HOST, 0))
    port, descriptor = given.getsockname()[1], given.fileno()
    store = dist.TCPStore(HOST, port, 1, True, master_listen_fd=descriptor)
    given.close()
    other = os.open(os.devnull, os.O_RDONLY)
    assert other == descriptor  # of whatever the program opens next
    store.set("a", "1")
    assert client_at(port).get("a") == b"1"
    del store
    os.close(other)


def test_a_socket_stays_the_callers_where_the_constructor_fails() -> None:
    with socket.create_server((HOST, 0)) as given:
        with pytest.raises(StoreError):
            dist.TCPStore(
                HOST, given.getsockname()[1], 2, True, SHORT, master_listen_fd=given.fileno()
            )
        socket.create_connection(given.getsockname(), PATIENCE).close()


def test_a_forked_child_ends_nothing_of_its_parents() -> None:
    store = dist.TCPStore(HOST, 0, 1, True)
    port = store.port
    child = os.fork()
    if child == 0:
        try:
            del store
            gc.collect()
            os._exit(0 if _tcpstore._servers[port].end_if_over() else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    store.set("a", "1")
    assert client_at(port).get("a") == b"1"


def test_what_torch_limits_less_than_muster_does() -> None:
    store = dist.TCPStore(HOST, 0, 1, True)
    key, value = "k" * 8000, b"v" * (20 << 20)
    store.set(key, value)
    assert client_at(store.port).get(key) == value


# Jobs.

SCRIPT = """
import os, sys
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
import torch
import torch.distributed as dist
if sys.argv[1] == "0":
    import muster.torch
    from muster.torch import _tcpstore
    muster.torch.patch_tcpstore()
rank, size, method = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
os.environ.update(RANK=str(rank), WORLD_SIZE=str(size))
dist.init_process_group("gloo", init_method=method, rank=rank, world_size=size)
if rank == 0:
    assert len(_tcpstore._servers) == 1, "torch's own server"
total = torch.ones(1) * (rank + 1)
dist.all_reduce(total)
dist.barrier(dist.new_group())
print("said", int(total), flush=True)
dist.destroy_process_group()
"""


@pytest.mark.parametrize("method", ["tcp", "env"])
def test_ranks_that_are_not_patched_meet_at_rank_0(
    method: str, process: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = reserved()
    monkeypatch.setenv("MASTER_ADDR", HOST)
    monkeypatch.setenv("MASTER_PORT", str(port))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    url = f"tcp://{HOST}:{port}" if method == "tcp" else "env://"
    script = textwrap.dedent(SCRIPT)
    ranks = [process(script, str(rank), "3", url) for rank in range(3)]
    for rank in ranks:
        said, errors = rank.communicate(timeout=2 * PATIENCE)
        assert rank.returncode == 0, errors
        assert said.split() == ["said", "6"]


def test_a_process_ends_with_its_own_code_while_it_serves(
    process: Start
) -> None:
    one = process("""
        import torch.distributed as dist
        import muster.torch
        muster.torch.patch_tcpstore()
        store = dist.TCPStore("127.0.0.1", 0, 1, True)
        prefix = dist.PrefixStore("p", dist.TCPStore("127.0.0.1", 0, 1, True))
        sys.exit(7)
    """)
    assert one.wait(PATIENCE) == 7
    assert one.stderr is not None and one.stderr.read() == ""


# muster.Server by itself.


def test_a_server_of_muster_has_ports_for_tcpstore(namespace: str) -> None:
    with socket.socket() as given:
        given.bind((HOST, 0))
        given.listen()
        descriptor, port = os.dup(given.fileno()), given.getsockname()[1]
    with muster.Server(tcpstore=[f"{HOST}:0={namespace}", descriptor]) as server:
        with pytest.raises(OSError):
            os.fstat(descriptor)  # it is the server's
        first, second = server.tcpstore_ports
        assert second == port
        one, other = client_at(first), client_at(second)
        with muster.Store(server.addresses[0], namespace=namespace) as store:
            store.set("/a", "1")
        other.set("a", "2")
        assert [one.get("a"), other.get("a")] == [b"1", b"2"]
    with pytest.raises(muster.PermissionDenied):
        muster.Server(tcpstore="0.0.0.0:0")
    for nonsense in (True, -1, 1.5, None):
        with pytest.raises((ValueError, TypeError)):
            muster.Server(tcpstore=nonsense)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="second"):
        muster.Server(tcpstore_dialect="third")  # type: ignore[arg-type]
    muster.Server(tcpstore="0.0.0.0:0", allow_unauthenticated_tcpstore=True).stop()


def test_a_permission_ends_with_its_patch() -> None:
    def is_allowed() -> bool:
        return _tcpstore._unauthenticated_allowed

    assert not is_allowed()
    with patch_tcpstore(allow_unauthenticated=True):
        assert is_allowed()
        with patch_tcpstore():
            assert is_allowed()
        assert is_allowed()
    assert not is_allowed()
    wrong: Any = "no"
    with pytest.raises(TypeError, match="allow_unauthenticated: bool, not str"):
        patch_tcpstore(allow_unauthenticated=wrong)


def test_a_child_serves_although_another_thread_did_when_it_was_forked() -> None:
    began, goes_on = threading.Event(), threading.Event()

    def serve() -> None:
        with _tcpstore._lock:
            began.set()
            goes_on.wait(PATIENCE)

    thread = threading.Thread(target=serve)
    thread.start()
    began.wait(PATIENCE)
    child = os.fork()
    if child == 0:
        dist.TCPStore(HOST, 0, 1, True, SHORT).set("k", "v")
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    goes_on.set()
    thread.join(PATIENCE)
    assert status == 0
