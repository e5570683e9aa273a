"""What operators change, from Python: settings, the end of sessions, and the server's end."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import muster
import muster.aio
import pytest
from conftest import MUSTERD, PATIENCE
from muster.compat import vllm
from muster.runtime import Environment


class Own:
    """A musterd that one test has for itself."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [MUSTERD, "--listen", "127.0.0.1:0", "--log-level", "warning"],
            stdout=subprocess.PIPE, text=True,
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().split()[-1]

    def store(self, **options: Any) -> muster.Store:
        return muster.Store(self.address, namespace="n", timeout=PATIENCE, **options)


@pytest.fixture
def own() -> Iterator[Own]:
    server = Own()
    yield server
    server.process.terminate()
    server.process.communicate(timeout=PATIENCE)


@pytest.fixture
def supervisor(own: Own) -> Iterator[muster.Store]:
    with own.store(role="supervisor", label="supervisor") as store:
        yield store


def session_of(supervisor: muster.Store, label: str) -> int:
    (number,) = [
        session["session"] for session in supervisor.inspect("sessions")
        if session["label"] == label
    ]
    assert isinstance(number, int)
    return number


def test_settings_are_as_their_kind_says(own: Own) -> None:
    with own.store() as store:
        store.set("k", bytes(1000))
        settings = {setting.name: setting for setting in store.operate.settings()}
        memory = settings["memory-bytes-max"]
        assert (memory.kind, memory.changes, memory.fixed_because) == ("bytes", True, "")
        assert isinstance(memory.value, int) and memory.value > 1 << 20
        assert memory.least == 1 << 20
        assert memory.used is not None and 1000 <= memory.used < 1 << 20
        heartbeat = settings["heartbeat"]
        assert (heartbeat.kind, heartbeat.value, heartbeat.changes) == ("duration", 1.0, False)
        assert heartbeat.fixed_because
        assert store.operate.settings("slow-round-log") == [
            muster.Setting("slow-round-log", "duration", 10.0, 0.1, 3600.0, None, "")
        ]
        assert store.operate.settings("log-level") == [
            muster.Setting("log-level", "level", "warning", "debug", "silent", None, "")
        ]
        with pytest.raises(muster.NotFound):
            store.operate.settings("none")


def test_a_setting_is_changed_until_the_server_ends(own: Own, supervisor: muster.Store) -> None:
    operate = supervisor.operate
    assert operate.set_setting("slow-round-log", 1.5).value == 1.5
    assert operate.set_setting("slow-round-log", 2).value == 2.0
    changed = operate.set_setting("slow-round-log", timedelta(milliseconds=100), timeout=PATIENCE)
    assert changed == muster.Setting("slow-round-log", "duration", 0.1, 0.1, 3600.0, None, "")
    assert operate.set_setting("log-level", "silent").value == "silent"
    assert operate.set_setting("log-level", "error").value == "error"
    assert operate.set_setting("parked-waits-max", 77).value == 77
    with own.store() as other:
        assert other.operate.settings("parked-waits-max")[0].value == 77
        other.set("long", bytes(2 << 20))
        lowered = operate.set_setting("memory-bytes-max", 1 << 20, timeout=timedelta(minutes=1))
        assert lowered.used is not None and lowered.used > 2 << 20
        with pytest.raises(muster.ResourceExhausted):
            other.set("more", b"v")


@pytest.mark.parametrize(("name", "value", "error"), [
    ("none", 1, muster.NotFound),
    ("heartbeat", 2.0, muster.InvalidArgument),
    ("parked-waits-max", 0, muster.InvalidArgument),
    ("parked-waits-max", "many", TypeError),
    ("parked-waits-max", 7.0, TypeError),
    ("parked-waits-max", True, TypeError),
    ("parked-waits-max", timedelta(seconds=7), TypeError),
    ("parked-waits-max", -1, ValueError),
    ("parked-waits-max", 1 << 64, ValueError),
    ("slow-round-log", "1s", TypeError),
    ("slow-round-log", True, TypeError),
    ("slow-round-log", -1.0, ValueError),
    ("slow-round-log", float("nan"), ValueError),
    ("slow-round-log", float("inf"), ValueError),
    ("log-level", "loud", ValueError),
    ("log-level", 1, TypeError),
])
def test_a_value_that_a_setting_has_not_is_refused(
    supervisor: muster.Store, name: str, value: Any, error: type[Exception]
) -> None:
    before = supervisor.operate.settings()
    with pytest.raises(error):
        supervisor.operate.set_setting(name, value)
    assert supervisor.operate.settings() == before


def test_a_key_in_a_wrong_place_is_not_shown(own: Own, supervisor: muster.Store) -> None:
    key = "ZXhhbXBsZSAxLCBldmVyeWJvZHkga25vd3MgdGhpcy4="
    create = muster.StatelessProcessGroup.create
    operate = supervisor.operate
    host: dict[str, Any] = {"host": "127.0.0.1", "port": 1, "rank": 0, "world_size": 1}

    async def connect(secret: Any) -> None:
        await muster.aio.Store.connect(own.address, role=secret)

    for secret in (key, f"job {key} * all"):
        bad: Any = secret
        calls: list[Callable[[], object]] = [
            lambda: own.store(role=bad),
            lambda: asyncio.run(connect(bad)),
            lambda: create(**host, host_server=bad),
            *(lambda each=each: create(**{**host, each: bad}) for each in host),
            *(lambda each=each: vllm.StatelessProcessGroup.create(**{**host, each: bad})
              for each in ("host", "port", "world_size")),
            lambda: create("127.0.0.1", bad, 0, 1),
            lambda: operate.set_setting(bad, 5),
            lambda: operate.set_setting("log-level", bad),
            lambda: operate.set_setting("grace", bad),
            lambda: operate.set_setting("parked-waits-max", bad),
            lambda: operate.end_session(bad, "reason"),
            lambda: supervisor.inspect(bad),
            lambda: Environment({}).number(bad),
            *(Environment({"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", name: bad}).validate
              for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "NODE_RANK", "FS_LOCAL_RANK",
                           "REPLICA_GROUP_ID", "NUM_NODES")),
        ]
        for call in calls:
            with pytest.raises((TypeError, ValueError, muster.MusterError)) as caught:
                call()
            shown = str(caught.value) + repr(caught.value)
            assert key[:24] not in shown and "because it is now known" in shown


def test_who_has_not_the_right_changes_nothing(own: Own, supervisor: muster.Store) -> None:
    before = supervisor.operate.settings("parked-waits-max")
    session = session_of(supervisor, "supervisor")
    with own.store() as other:
        calls: list[Callable[[], object]] = [
            lambda: other.operate.set_setting("parked-waits-max", 1),
            lambda: other.operate.end_session(session, "why"),
            lambda: other.operate.end_sessions_of("0" * 31 + "1", "why"),
            lambda: other.operate.drain(0.0, "why"),
            lambda: other.operate.cancel_drain(),
        ]
        for call in calls:
            with pytest.raises(muster.PermissionDenied) as raised:
                call()
            assert not raised.value.in_doubt
    assert supervisor.operate.settings("parked-waits-max") == before


def test_a_supervisor_without_the_right_admin_ends_sessions_alone(tmp_path: Path) -> None:
    credentials = tmp_path / "credentials"
    credentials.write_text(f"unix:uid={os.getuid()} * all as=team/keeper\n")
    credentials.chmod(0o600)
    listen = f"unix:{tmp_path}/socket"
    with (
        muster.Server(listen, credentials_file=str(credentials)) as server,
        muster.Store(server.addresses[0], role="supervisor") as keeper,
        muster.Store(server.addresses[0], label="other") as other,
    ):
        assert "admin" not in keeper.whoami().rights
        calls: list[Callable[[], object]] = [
            lambda: keeper.operate.set_setting("parked-waits-max", 1),
            lambda: keeper.operate.drain(),
        ]
        for call in calls:
            with pytest.raises(muster.PermissionDenied, match="admin"):
                call()
        keeper.operate.end_session(session_of(keeper, "other"), "why")
        with pytest.raises(muster.Fenced):
            other.set("k", b"v")


def test_sessions_are_ended(own: Own, supervisor: muster.Store) -> None:
    operate = supervisor.operate
    with own.store(label="other") as other:
        operate.end_session(session_of(supervisor, "other"), "it holds the lock")
        with pytest.raises(muster.Fenced) as raised:
            other.set("k", b"v")
        assert "it holds the lock" in raised.value.detail
        other.reopen()
        other.set("k", b"v")
    own_session = session_of(supervisor, "supervisor")
    with pytest.raises(muster.InvalidArgument):
        operate.end_session(own_session, "why")
    with pytest.raises(muster.NotFound):
        operate.end_session(own_session + 1000, "why")
    with pytest.raises(muster.NotFound):
        operate.end_sessions_of("0" * 31 + "1", "why")
    with pytest.raises(ValueError, match="32 hexadecimal digits"):
        operate.end_sessions_of("x", "why")


def test_all_sessions_of_a_process_are_ended(own: Own, supervisor: muster.Store) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", f"""
import muster
stores = [muster.Store({own.address!r}, namespace="n") for _ in range(2)]
print(stores[0].process.id, flush=True)
try:
    stores[1].get("never", timeout={PATIENCE})
except muster.Fenced as fenced:
    print(fenced.detail, flush=True)
"""],
        stdout=subprocess.PIPE, text=True,
    ) as victim:
        assert victim.stdout is not None
        process = victim.stdout.readline().strip()
        assert supervisor.operate.end_sessions_of(process, "its node is needed") == 2
        assert "its node is needed" in victim.communicate(timeout=PATIENCE)[0]
        assert victim.returncode == 0


def test_a_drain_keeps_newcomers_out_until_it_is_cancelled(
    own: Own, supervisor: muster.Store
) -> None:
    with own.store() as other:
        assert supervisor.operate.drain(reason="an update") == 1
        with pytest.raises(muster.Unavailable) as raised:
            own.store(connect_timeout=1)
        assert "an update" in raised.value.detail
        assert supervisor.operate.drain(timedelta(hours=1)) == 1
        other.set("k", b"v")
        supervisor.operate.cancel_drain()
        with own.store() as newcomer:
            assert newcomer.get("k", timeout=0) == b"v"
        with pytest.raises(muster.NotFound):
            supervisor.operate.cancel_drain()


def test_a_drain_whose_time_is_over_ends_the_server(own: Own, supervisor: muster.Store) -> None:
    with own.store():
        supervisor.operate.drain(0.001, "over")
        assert own.process.wait(PATIENCE) == 0


def test_the_same_with_asyncio(own: Own) -> None:
    async def main() -> None:
        async def connect(**options: Any) -> muster.aio.Store:
            return await muster.aio.Store.connect(own.address, namespace="n", **options)

        async with (
            await connect(role="supervisor", timeout=PATIENCE) as keeper,
            await connect(label="other", timeout=PATIENCE) as other,
        ):
            operate = keeper.operate
            assert isinstance(operate, muster.aio.Operator)
            assert len(await operate.settings()) > 5
            changed = await operate.set_setting("slow-round-log", timedelta(seconds=3), timeout=9)
            assert changed.value == 3.0
            assert await other.operate.settings("slow-round-log") == [changed]
            with pytest.raises(muster.PermissionDenied):
                await other.operate.set_setting("slow-round-log", 4)
            with pytest.raises(TypeError):
                await operate.set_setting("parked-waits-max", "many")
            (session,) = [
                each["session"] for each in await keeper.inspect("sessions")
                if each["label"] == "other"
            ]
            await operate.end_session(session, "an operator says so")
            with pytest.raises(muster.Fenced, match="an operator says so"):
                await other.set("k", b"v")
            await other.reopen()
            with pytest.raises(muster.NotFound):
                await operate.end_sessions_of("0" * 31 + "1", "why")
            assert await operate.drain(reason="an update") == 1
            with pytest.raises(muster.Unavailable):
                await connect(connect_timeout=1)
            await operate.cancel_drain()
            with pytest.raises(muster.NotFound):
                await operate.cancel_drain()

    asyncio.run(main())
