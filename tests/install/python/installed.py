"""Test: the package and the programs of a wheel, in the environment into which it was installed.

installed.py VERSION   run by that environment's Python, in a process without variables
"""

from __future__ import annotations

import importlib.metadata
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 60
BIN = Path(sys.prefix, "bin")
RANK = """
import os, muster
with muster.Store(os.environ["MUSTER_STORE"], namespace="wheel", timeout=30) as store:
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    group = muster.StatelessProcessGroup(store, "job", rank, size)
    pids = group.all_gather_obj(os.getpid())
    assert len(set(pids)) == size, pids
    print(f"rank {rank} of {size}", flush=True)
"""


def program(name: str, *arguments: str, **environment: str) -> str:
    """What one of the wheel's programs prints; it has to succeed."""
    done = subprocess.run(
        [BIN / name, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=PATIENCE_S, env=environment,
    )
    assert done.returncode == 0, (name, arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout


@contextmanager
def musterd(*arguments: str) -> Iterator[str]:
    """Yields its address."""
    server = subprocess.Popen(
        [BIN / "musterd", "--listen", "127.0.0.1:0", "--log-level", "warning", *arguments],
        stdout=subprocess.PIPE, text=True, env={},
    )
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line, "musterd has not started"
        yield line.split()[-1]
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE_S) == 0


def check_import(version: str) -> None:
    start = time.perf_counter()
    import muster

    print(f"imported in {(time.perf_counter() - start) * 1e3:.1f} ms")
    folder = Path(muster.__file__).parent
    assert folder.is_relative_to(sys.prefix), folder
    assert (folder / "py.typed").is_file()
    assert importlib.metadata.version("muster-groups") == version == muster.__version__
    for name in ("musterd", "musterctl", "musterrun"):
        assert version in program(name, "--version")


def check_store() -> None:
    import muster

    with musterd() as address, muster.Store(address, timeout=PATIENCE_S) as store:
        store.set("key", b"value")
        assert program("musterctl", "--server", address, "get", "key").strip() == "value"
        program("musterctl", "--server", address, "set", "other", "1")
        assert store.get("other") == b"1"

        groups = []

        def join() -> None:
            with muster.Store(address, timeout=PATIENCE_S) as second:
                group = muster.StatelessProcessGroup(second, "g", 1, 2)
                groups.append(group.all_gather_obj("second"))

        thread = threading.Thread(target=join)
        thread.start()
        group = muster.StatelessProcessGroup(store, "g", 0, 2)
        groups.append(group.all_gather_obj("first"))
        thread.join(PATIENCE_S)
        assert groups == [["first", "second"]] * 2, groups


def check_job() -> None:
    printed = program("musterrun", "-n", "2", "--tee", "1", sys.executable, "-c", RANK)
    assert all(f"rank {rank} of 2" in printed for rank in (0, 1)), printed


def check_tls() -> None:
    import muster

    key = Path("key")
    key.touch(mode=0o600)
    key.write_text(program("musterctl", "keygen"))
    with musterd("--credentials", str(key)) as address:
        with muster.Store(address, credential_file=str(key), timeout=PATIENCE_S) as store:
            store.set("key", b"secret")
            got = program(
                "musterctl", "--server", address, "get", "key",
                MUSTER_CREDENTIAL_FILE=str(key),
            )
            assert got.strip() == "secret"
        try:
            muster.Store(address, timeout=5)
        except muster.MusterError:
            pass
        else:
            raise AssertionError("nobody gets in without a key")
    # A server in the process, and the ranks of musterrun, by TLS as well.
    with muster.Server(credentials_file=str(key)) as server:
        with muster.Store(server.addresses[0], credential_file=str(key), timeout=10) as store:
            assert store.add("count") == 1
    printed = program(
        "musterrun", "-n", "2", "--tee", "1", sys.executable, "-c", RANK,
        MUSTER_CREDENTIAL_FILE=str(key.absolute()),
    )
    assert "rank 1 of 2" in printed, printed
    with open("/proc/self/maps") as maps:
        loaded = {line.split()[-1] for line in maps if "libcrypto" in line or "muster" in line}
    print(*sorted(loaded), sep="\n")


def main() -> int:
    version = sys.argv[1]
    assert "LD_LIBRARY_PATH" not in os.environ
    check_import(version)
    check_store()
    check_job()
    check_tls()
    print("the wheel holds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
