"""muster.compat.vllm beside the original: ranks that use it, and its class in this process."""

from __future__ import annotations

import inspect
import logging
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

import muster
import pytest
from conftest import PATIENCE, in_threads
from muster.compat._keys import KeyStore
from muster.compat._peers import speaks_tcpstore
from muster.compat.vllm import StatelessProcessGroup
from vllm_groups import held, listening

# Ranks that use the original.


def until_closed(port: int, pieces: list[bytes]) -> tuple[bytes, str]:
    """What the server says to a client, and that one's address."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        name = "{}:{}".format(*connection.getsockname())
        for piece in pieces:
            connection.sendall(piece)
        try:
            return connection.recv(1000), name
        except ConnectionResetError:
            return b"", name


@pytest.mark.parametrize("pieces", [
    [b"\x00\xce\xf7\x85\x3c"],
    [b"\x03", (5).to_bytes(8, "little"), b"init/"],
    [b"\x00", (6).to_bytes(8, "little"), b"/a"],
], ids=["validate", "add", "set"])
def test_a_client_of_tcpstore_is_refused_at_once_and_named(
    pieces: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    serving, port = listening()
    seen: list[tuple[bytes, str, float]] = []

    def stranger() -> None:
        began = time.monotonic()
        seen.append((*until_closed(port, pieces), time.monotonic() - began))

    thread = threading.Thread(target=stranger)
    thread.start()
    with caplog.at_level(logging.WARNING, "muster"), pytest.raises(muster.TimedOut) as raised:
        StatelessProcessGroup.create(
            "127.0.0.1", port, 0, 2, store_timeout=2, listen_socket=serving
        )
    thread.join(PATIENCE)
    (answer, name, took), = seen
    assert answer == b"" and took < 1.5
    assert raised.value.rank_numbers == [1]
    assert name in str(raised.value) and "TCPStore" in str(raised.value)
    lines = [record.getMessage() for record in caplog.records]
    assert any(name in line and "TCPStore" in line for line in lines)


def serve_as_tcpstore(answers: dict[bytes, bytes]) -> tuple[socket.socket, int]:
    """A server that answers these requests, and ends every other connection."""
    serving, port = listening()

    def serve() -> None:
        while True:
            try:
                connection, _ = serving.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(PATIENCE)
                request = connection.recv(1000)
                for start, answer in answers.items():
                    if request.startswith(start):
                        connection.sendall(answer or request[6:10])

    threading.Thread(target=serve, daemon=True).start()
    return serving, port


VALIDATE = b"\x00\xce\xf7\x85\x3c"


@pytest.mark.parametrize("answers", [
    {VALIDATE + b"\x0d": b""}, {VALIDATE + b"\x07": (3).to_bytes(8, "little")},
    {b"\x06": (3).to_bytes(8, "little")},
], ids=["2.5", "2.2", "1.13"])
def test_a_rank_0_that_uses_the_original_is_named_at_once(answers: dict[bytes, bytes]) -> None:
    serving, port = serve_as_tcpstore(answers)
    began = time.monotonic()
    with pytest.raises(muster.ProtocolBroken, match="TCPStore") as raised:
        StatelessProcessGroup.create("127.0.0.1", port, 1, 2, store_timeout=60)
    serving.close()
    assert isinstance(raised.value, RuntimeError) and raised.value.rank_numbers == [0]
    assert time.monotonic() - began < 10


def test_who_waits_for_rank_0_is_no_stranger_to_it() -> None:
    """It asks a socket that listens, and that nobody serves yet, what it speaks."""
    serving, port = listening()

    def late() -> None:
        with pytest.raises(muster.MusterError):
            StatelessProcessGroup.create("127.0.0.1", port, 2, 3, store_timeout=4)

    waiting = threading.Thread(target=late)
    waiting.start()
    assert speaks_tcpstore("127.0.0.1", port) is False
    with pytest.raises(muster.TimedOut) as raised:
        StatelessProcessGroup.create(
            "127.0.0.1", port, 0, 3, store_timeout=1, listen_socket=serving
        )
    waiting.join(PATIENCE)
    assert "TCPStore" not in str(raised.value)


def test_a_server_of_another_kind_is_not_called_tcpstore() -> None:
    serving, port = serve_as_tcpstore({})
    with pytest.raises(muster.MusterError) as raised:
        StatelessProcessGroup.create("127.0.0.1", port, 1, 2, store_timeout=3)
    serving.close()
    assert "TCPStore" not in str(raised.value)


def test_a_rank_0_that_starts_late_is_waited_for() -> None:
    serving, port = held()

    def work(rank: int) -> list[Any]:
        if rank == 0:
            assert is_waiting.wait(PATIENCE)
        else:
            threading.Timer(1.0, is_waiting.set).start()
        group = StatelessProcessGroup.create(
            "127.0.0.1", port, rank, 2, store_timeout=20,
            listen_socket=serving if rank == 0 else None,
        )
        kept.append(group)
        return group.all_gather_obj(rank)

    is_waiting = threading.Event()
    kept: list[StatelessProcessGroup] = []
    assert in_threads(2, work) == [[0, 1], [0, 1]]
    for group in kept:
        group.store = None


@pytest.mark.parametrize("place", [held, listening], ids=["refuses", "is silent"])
def test_a_rank_0_that_never_comes_costs_one_timeout(
    place: Callable[[], tuple[socket.socket, int]],
) -> None:
    serving, port = place()
    began = time.monotonic()
    with pytest.raises(muster.MusterError) as raised:
        StatelessProcessGroup.create("127.0.0.1", port, 1, 2, store_timeout=3)
    took = time.monotonic() - began
    serving.close()
    assert took < 4.5
    assert 2.9 < raised.value.elapsed <= took
    assert f"after {raised.value.elapsed:.1f} s" in str(raised.value)


def with_a_late_rank_0(world_size: int, then: Callable[[StatelessProcessGroup], Any]) -> float:
    """Runs ``then`` on the last rank, for which rank 0 came after half of its 3 s. Returns how long
    all of that has taken."""
    serving, port = held()
    took: list[float] = []

    def work(rank: int) -> None:
        if rank == 0:
            assert is_late.wait(PATIENCE)
            kept.append(StatelessProcessGroup.create(
                "127.0.0.1", port, 0, world_size, store_timeout=2, listen_socket=serving
            ))
            return
        threading.Timer(1.5, is_late.set).start()
        began = time.monotonic()
        try:
            group = StatelessProcessGroup.create(
                "127.0.0.1", port, world_size - 1, world_size, store_timeout=3
            )
            then(group)
            group.store = None
        finally:
            took.append(time.monotonic() - began)

    is_late = threading.Event()
    kept: list[StatelessProcessGroup] = []
    try:
        in_threads(2, work)
    finally:
        for group in kept:
            group.store = None
    return took[0]


def test_a_rank_that_never_comes_costs_one_timeout() -> None:
    with pytest.raises(muster.TimedOut) as raised:
        with_a_late_rank_0(3, lambda group: None)
    assert raised.value.rank_numbers == [1]
    assert raised.value.elapsed < 4


def test_calls_have_all_of_the_timeout_however_long_joining_took() -> None:
    def then(group: StatelessProcessGroup) -> None:
        with pytest.raises(muster.TimedOut) as raised:
            group.recv_obj(0)
        assert raised.value.elapsed > 2.9

    assert with_a_late_rank_0(2, then) > 4


def test_keys_that_come_and_go_cost_one_timeout() -> None:
    class Vanishing:
        """Of its keys one is gone each time."""

        given: list[float] = []

        def wait(self, keys: list[str], *, timeout: float) -> None:
            self.given.append(timeout)
            if timeout == 0:
                raise muster.TimedOut("in all", code="timed_out")

        def multi_get(self, keys: list[str], *, timeout: object) -> list[bytes | None]:
            return [b"v", None]

    store: Any = Vanishing()
    with pytest.raises(muster.TimedOut):
        KeyStore(store, 0.05).multi_get(["a", "b"])
    assert sorted(store.given, reverse=True) == store.given


# vLLM itself, or what stands for it.


@pytest.fixture
def with_vllm(
    tmp_path: Any, process: Callable[..., Any]
) -> Callable[[str], str]:
    """Runs a program where a package vllm is, whose class is a stub, and returns what it prints."""
    package = tmp_path / "vllm" / "distributed"
    package.mkdir(parents=True)
    (tmp_path / "vllm" / "__init__.py").write_text("")
    (package / "__init__.py").write_text(
        "from vllm.distributed.utils import StatelessProcessGroup\n"
    )
    (package / "utils.py").write_text(
        "import dataclasses\n"
        "@dataclasses.dataclass\n"
        "class StatelessProcessGroup:\n"
        "    rank: int\n"
        "    world_size: int\n"
        "    store: object\n"
        "    socket: object\n"
        "    data_expiration_seconds: int = 3600\n"
        "    @staticmethod\n"
        "    def create(host, port, rank, world_size):\n"
        "        return 'original'\n"
        "    def send_obj(self, obj, dst): ...\n"
        "    def recv_obj(self, src): ...\n"
        "    def broadcast_obj(self, obj, src): ...\n"
        "    def all_gather_obj(self, obj): ...\n"
        "    def barrier(self, timeout=30.0): ...\n"
    )
    text = (package / "utils.py").read_text()
    (tmp_path / "copy_of_it.py").write_text(text.replace("self, timeout=30.0", "self"))
    (tmp_path / "other_shape.py").write_text(
        "class StatelessProcessGroup:\n"
        "    def __init__(self, master_address, port, rank, world_size): ...\n"
        "    def broadcast(self, tensor, src): ...\n"
    )
    (tmp_path / "user.py").write_text(
        "from vllm.distributed.utils import StatelessProcessGroup as Group\n"
        "def is_group(one):\n"
        "    return isinstance(one, Group)\n"
    )

    def run(program: str) -> str:
        head = f"sys.path.insert(0, {os.fspath(tmp_path)!r})\n"
        one = process(head + inspect.cleandoc(program))
        out, errors = one.communicate(timeout=PATIENCE)
        assert one.returncode == 0, errors
        return str(out)

    return run


def test_our_groups_are_groups_of_vllms_class(with_vllm: Callable[[str], str]) -> None:
    with_vllm("""
        import user
        from muster.compat.vllm import StatelessProcessGroup
        ours = StatelessProcessGroup(0, 2, None)
        assert type(ours) is not user.Group and user.is_group(ours)
        assert ours.socket is None and ours.data_expiration_seconds == 3600
        assert hash(ours) and ours == ours and ours != StatelessProcessGroup(0, 2, None)
    """)


def test_patch_reaches_who_has_the_class_already_and_is_undone(
    with_vllm: Callable[[str], str],
) -> None:
    with_vllm("""
        import user
        import vllm.distributed, vllm.distributed.utils
        original = user.Group
        before = original(0, 1, None, None)
        import muster.compat.vllm as compat
        ours = compat.StatelessProcessGroup
        with compat.patch():
            assert user.Group is vllm.distributed.StatelessProcessGroup is ours
            assert vllm.distributed.utils.StatelessProcessGroup is ours
            assert user.is_group(before) and user.is_group(user.Group(0, 1, None))
            assert compat.StatelessProcessGroup is ours
            inner = compat.patch(allow_unauthenticated=True)
            inner.undo()
            assert not ours._is_allowed
            assert user.Group is ours
            import types
            late = types.ModuleType("late")
            exec("from vllm.distributed.utils import StatelessProcessGroup", late.__dict__)
            sys.modules["late"] = late
        assert user.Group is original
        assert vllm.distributed.StatelessProcessGroup is original
        assert late.StatelessProcessGroup is original
        assert compat.StatelessProcessGroup is ours
        assert user.is_group(before) and user.is_group(ours(0, 1, None))
    """)


def test_copies_of_vllms_class_are_patched_by_their_module(
    with_vllm: Callable[[str], str],
) -> None:
    with_vllm("""
        import copy_of_it, user, vllm.distributed.utils
        kept = [copy_of_it.StatelessProcessGroup, user.Group]  # where no patch looks
        before = kept[0](0, 1, None, None)
        import muster.compat.vllm as compat
        of_copy, of_vllm = compat.patch(copy_of_it), compat.patch()
        Copy = copy_of_it.StatelessProcessGroup
        assert Copy is not compat.StatelessProcessGroup is user.Group
        assert isinstance(before, Copy) and not isinstance(before, user.Group)
        assert compat.patch("copy_of_it").undo() is None
        assert copy_of_it.StatelessProcessGroup is Copy
        import socket
        one = socket.create_server(("127.0.0.1", 0))
        port = one.getsockname()[1]
        group = Copy.create("127.0.0.1", port, 0, 1, timeout_seconds=40, listen_socket=one)
        assert type(group) is Copy and group.store.timeout.total_seconds() == 40
        asked = []
        type(group._hosted).barrier = lambda hosted, timeout: asked.append(timeout)
        group.barrier()
        group.barrier(timeout=5)
        assert asked == [40, 5], asked
        try:
            Copy.create(*[None] * 8)
        except TypeError as error:
            assert "create() takes 7 " in str(error) and ": timeout_seconds=" in str(error)
            asked.clear()
        assert asked == []
        of_vllm.undo()
        assert copy_of_it.StatelessProcessGroup is Copy and user.Group is kept[1]
        of_copy.undo()
        assert copy_of_it.StatelessProcessGroup is kept[0]
        group.store = None
    """)


def test_a_class_of_another_shape_is_refused_by_name(with_vllm: Callable[[str], str]) -> None:
    with_vllm("""
        import other_shape
        import muster.compat.vllm as compat
        try:
            compat.patch("other_shape", allow_unauthenticated=True)
        except TypeError as error:
            said = str(error)
        assert "other_shape.StatelessProcessGroup" in said and "has no create, send_obj" in said
        assert "(master_address, port, rank, world_size)" in said and "patch_tcpstore" in said
        assert not compat.StatelessProcessGroup._is_allowed
        assert other_shape.StatelessProcessGroup.__module__ == "other_shape"
    """)


def test_without_vllm_the_class_is_a_plain_one(
    process: Callable[..., subprocess.Popen[str]],
) -> None:
    one = process("""
        sys.modules["vllm"] = None  # as if it were not installed, also where it is
        from muster.compat.vllm import StatelessProcessGroup, patch
        modules = {base.__module__ for base in StatelessProcessGroup.__mro__}
        assert modules == {"muster.compat.vllm", "muster._handles", "builtins"}, modules
        try:
            patch()
        except ImportError:
            print("it cannot be put in the place of a class that is not there")
    """)
    out, errors = one.communicate(timeout=PATIENCE)
    assert one.returncode == 0, errors
    assert out.startswith("it cannot be put")
