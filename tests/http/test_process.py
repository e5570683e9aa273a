"""What the process has of HTTP: threads, descriptors, signals, the library."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import struct
import subprocess
from pathlib import Path

import pytest

from conftest import PATIENCE, until
from test_stream import Viewer

MUSTERD = os.environ["MUSTERD"]


def threads(pid):
    return {Path(f"/proc/{pid}/task/{tid}/comm").read_text().strip(): tid
            for tid in os.listdir(f"/proc/{pid}/task")}


def sockets(folder):
    """The inodes of the sockets that are open there."""
    found = set()
    for name in os.listdir(folder):
        try:
            target = os.readlink(f"{folder}/{name}")
        except FileNotFoundError:
            continue
        if target.startswith("socket:"):
            found.add(target)
    return found


def test_without_the_flag_there_is_one_thread():
    server = subprocess.Popen([MUSTERD, "--listen", "127.0.0.1:0", "--log-level", "silent"],
                              stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout.readline().startswith("musterd listening on ")
        assert len(os.listdir(f"/proc/{server.pid}/task")) == 1
        assert "libmuster-http" not in Path(f"/proc/{server.pid}/maps").read_text()
    finally:
        server.terminate()
        server.communicate(timeout=PATIENCE)


def test_the_two_threads_share_no_socket(musterd):
    server = musterd()
    pid = server.process.pid
    http = threads(pid)["muster-http"]
    own = f"/proc/{pid}/task/{http}/fd"
    main = f"/proc/{pid}/task/{pid}/fd"
    with server.raw() as connection:
        connection.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.answer()[0] == 200
        assert len(sockets(own)) == 2 and len(sockets(main)) == 1
        assert not sockets(own) & sockets(main)
        listed = {os.readlink(f"{own}/{name}") for name in os.listdir(own)}
        allowed = ("/dev/null", "socket:", "anon_inode:[event", "anon_inode:[timerfd]")
        stderr = os.readlink(f"{own}/2")
        assert {name for name in listed if not name.startswith(allowed)} <= {stderr}
    until(lambda: len(sockets(own)) == 1)


def test_connections_of_the_server_do_not_appear_at_the_front(musterd):
    server = musterd()
    pid = server.process.pid
    own = f"/proc/{pid}/task/{threads(pid)['muster-http']}/fd"
    before = sockets(own)
    host, port = server.address.rsplit(":", 1)
    with socket.create_connection((host, int(port))):
        until(lambda: len(sockets(f"/proc/{pid}/task/{pid}/fd")) == 2)
        assert sockets(own) == before


def test_what_the_process_was_given_is_not_for_the_front():
    """Such as the socket at which it serves, from who has started it."""
    with socket.create_server(("127.0.0.1", 0)) as given:
        server = subprocess.Popen([MUSTERD, "--listen-fd", str(given.fileno()), "--http",
                                   "127.0.0.1:0"], pass_fds=[given.fileno()],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert [server.stdout.readline() for _ in range(2)][1].startswith("musterd serves HTTP")
            own = f"/proc/{server.pid}/task/{threads(server.pid)['muster-http']}/fd"
            inode = os.readlink(f"/proc/self/fd/{given.fileno()}")
            assert inode in sockets(f"/proc/{server.pid}/fd")
            assert inode not in sockets(own)
        finally:
            server.kill()
            server.communicate(timeout=PATIENCE)


def test_signals_are_not_for_the_front(musterd):
    server = musterd()
    pid = server.process.pid
    status = Path(f"/proc/{pid}/task/{threads(pid)['muster-http']}/status").read_text()
    blocked = int(next(line for line in status.splitlines() if line.startswith("SigBlk"))[7:], 16)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        assert blocked >> (number - 1) & 1
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(PATIENCE) == 0


def ptrace(request, pid):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    return libc.ptrace(request, pid, None, None)


def test_the_server_comes_first_where_processors_are_few(musterd):
    pid = musterd().process.pid

    def niceness(tid):
        return os.getpriority(os.PRIO_PROCESS, int(tid))

    assert niceness(threads(pid)["muster-http"]) == min(niceness(pid) + 10, 19)


def test_a_server_that_hangs_is_not_well(musterd):
    """One thread alone is stopped, as by a debugger."""
    seize, interrupt, detach = 0x4206, 0x4207, 17
    server = musterd()
    pid = server.process.pid
    if ptrace(seize, pid) != 0:
        pytest.skip("this process may not trace another one")

    def status(path):
        return server.status(f"GET {path} HTTP/1.1\r\nHost: localhost")

    with Viewer(server) as viewer:
        viewer.read_until(lambda: viewer.world.get("server", {}).get("stalled") is False)
        try:
            assert ptrace(interrupt, pid) == 0
            os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
            assert status("/healthz") == 200  # for the time being
            until(lambda: status("/healthz") == 503)
            assert status("/readyz") == 503
            viewer.read_until(lambda: viewer.world["server"]["stalled"])
        finally:
            ptrace(detach, pid)
        viewer.read_until(lambda: not viewer.world["server"]["stalled"])
    until(lambda: status("/healthz") == 200)


def forbid_unshare():
    """As the profile of most containers does, for this process and its children."""
    number = {"x86_64": 272, "aarch64": 97}[os.uname().machine]
    load, jump_equal, answer = 0x20, 0x15, 0x06
    refuse, allow = 0x00050000 | 1, 0x7FFF0000
    steps = [(load, 0, 0, 0), (jump_equal, 0, 1, number), (answer, 0, 0, refuse),
             (answer, 0, 0, allow)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))

    class Program(ctypes.Structure):
        _fields_ = [("count", ctypes.c_ushort), ("steps", ctypes.c_void_p)]

    program = Program(len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_seccomp, filter_mode = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) != 0 or \
            libc.prctl(set_seccomp, filter_mode, ctypes.byref(program), 0, 0) != 0:
        os._exit(99)


@pytest.mark.skipif(os.uname().machine not in ("x86_64", "aarch64"), reason="another machine")
def test_it_starts_where_unshare_is_forbidden():
    server = subprocess.Popen([MUSTERD, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              preexec_fn=forbid_unshare)
    try:
        lines = [server.stdout.readline() for _ in range(2)]
        if not any(lines) and server.wait(PATIENCE) == 99:
            pytest.skip("there is no seccomp")
        assert lines[1].startswith("musterd serves HTTP at "), server.stderr.read()
    finally:
        server.kill()
        server.communicate(timeout=PATIENCE)


def test_the_port_file_has_its_port_last(musterd, tmp_path):
    server = musterd("--port-file", str(tmp_path / "ports"))
    ports = (tmp_path / "ports").read_text().split()
    assert ports == [server.address.rsplit(":", 1)[1], str(server.port)]


def test_every_address_of_a_name_is_served(musterd):
    server = musterd(http="localhost:0")
    assert server.status("GET /healthz HTTP/1.1\r\nHost: localhost") == 200


def test_without_the_library_a_sentence_helps(tmp_path):
    alone = tmp_path / "bin" / "musterd"
    alone.parent.mkdir()
    # Where it looks is forgotten, whether that is an absolute path or one from the program.
    program = Path(MUSTERD).read_bytes().replace(b"src/server/http", b"src/server/none")
    alone.write_bytes(program)
    alone.chmod(0o700)
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    told = subprocess.run([str(alone), "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"],
                          capture_output=True, text=True, timeout=PATIENCE, env=environment,
                          check=False)
    assert told.returncode == 1
    assert "libmuster-http.so.0" in told.stderr and "without --http" in told.stderr
    started = subprocess.Popen([str(alone), "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, env=environment)
    try:
        assert started.stdout.readline().startswith("musterd listening on ")
    finally:
        started.terminate()
        started.communicate(timeout=PATIENCE)
