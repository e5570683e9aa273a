"""A TCPStore whose server is Muster's, in the place of torch's.

A store that is the master starts a server in this process, with a port for TCPStore's protocol; the
client stays torch's own, in C++. So native code, queues, clones, and ranks of processes that are
not patched work as before. ``serve`` starts a server; it ends with the last store of this process
at it: when no object in Python and no client in C++ is left, or with the process.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import operator
import os
import socket
import struct
import sys
import threading
import time
import weakref
from datetime import timedelta
from typing import Any, Literal

import torch
import torch.distributed as dist

from muster._keywords import names_keywords
from muster._patching import Patch, check_permission
from muster.errors import AddressInUse, MusterError, PermissionDenied
from muster.server import Server
from muster.torch._errors import NetworkError, StoreError, as_torch

DEFAULT_PORT = 29500
DEFAULT_TIMEOUT = timedelta(seconds=300)
LIFETIME_S = 365 * 24 * 3600.0  # the server's own ends before
MEMORY_BYTES = 1 << 30
VALUE_BYTES_MAX = 256 << 20
KEY_BYTES_MAX = 8192  # as torch's
BACKLOG = 4096
LOOK_S = 1.0
POLL_S = 0.01  # as torch's
ANSWER_S = 30.0  # of this process's own server

torchs: Any = dist.TCPStore
_KNOWS_LIBUV = "use_libuv" in (torchs.__init__.__doc__ or "")
_DIALECT: Literal["first", "second"] = "second" if torch.__version__[:4] == "2.1." else "first"
_VALIDATE, _GET = b"\x00\xce\xf7\x85\x3c", b"\x03"
_WORKERS = b"init/"

_log = logging.getLogger("muster")
_unauthenticated_allowed = False
_lock = threading.RLock()  # the end of a store may come within any line, by the collector


def _after_fork() -> None:
    """Another thread of the parent may have held the lock."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)
_servers: dict[int, Served] = {}


class Served:
    """A server of this process, and how many stores keep it."""

    def __init__(self, server: Server, is_shared: bool, descriptor: int | None) -> None:
        """descriptor  of the listening socket that the caller gave, which ends with the server"""
        self.port = server.tcpstore_ports[0]
        self.is_shared = is_shared
        self.stores_count = 1
        self._server = server
        self._descriptor = descriptor
        self._inode = None if descriptor is None else os.fstat(descriptor).st_ino
        self._pid = os.getpid()

    def leave(self) -> None:
        """A store is gone from Python. C++ may still have its client, of which Python is told
        nothing: then the server is looked at from time to time."""
        with _lock:
            self.stores_count -= 1
        if sys.is_finalizing() or self.stores_count or self.end_if_over():
            return
        threading.Thread(target=self._look, name="muster-tcpstore", daemon=True).start()

    def refuse(self) -> None:
        """A store at it could not be made. Its caller keeps the descriptor."""
        with _lock:
            self.stores_count -= 1
            if self.stores_count == 0:
                self._descriptor = None
                self._end()

    def end_if_over(self) -> bool:
        """Ends the server if no store of this process is left. A child has none of its parent."""
        with _lock:
            if self._pid == os.getpid():
                if self.stores_count or has_client(self.port):
                    return False
                self._end()
            return True

    def _end(self) -> None:
        if _servers.get(self.port) is self:
            del _servers[self.port]
        self._server.stop("the last TCPStore of the process that served it is gone")
        with contextlib.suppress(OSError):  # the program may have closed it
            if self._descriptor is not None and os.fstat(self._descriptor).st_ino == self._inode:
                os.close(self._descriptor)
        self._descriptor = None

    def _look(self) -> None:
        while not self.stores_count and not self.end_if_over():
            time.sleep(LOOK_S)


def has_client(port: int) -> bool:
    """Whether a socket of this process is connected to this process's own server at a port.

    Both ends of such a connection are here, so that a connection to the same port of another host
    is told apart.
    """
    ends = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            if not os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(name))) as one:
                if one.family in (socket.AF_INET, socket.AF_INET6):
                    ends.add((_end(one.getsockname()), _end(one.getpeername())))
        except OSError:  # closed in the meantime, or not connected
            continue
    return any(peer[1] == port and (peer, own) in ends for own, peer in ends)


def _end(address: Any) -> tuple[str, int]:
    return str(address[0]).removeprefix("::ffff:"), int(address[1])


def serve(host: str, port: int, descriptor: int | None, is_shared: bool) -> Served | None:
    """Starts a server for clients of TCPStore, or shares one as torch does (``multi_tenant``).

    returns  None: torchrun's agent has one at this port
    errors   of torch: the address is in use, or other machines reach it and that is not allowed
    """
    with _lock:
        found = _servers.get(port)
        if found is not None and not found.end_if_over() and found.is_shared and is_shared:
            found.stores_count += 1
            return found
        try:
            served = Served(_started(host, port, descriptor), is_shared, descriptor)
        except AddressInUse as error:
            if _is_agents(port):
                return None
            raise NetworkError(
                "The server socket has failed to listen on any local network address. "
                f"port: {port} (EADDRINUSE: Address already in use): {error}"
            ) from error
        except PermissionDenied as error:
            raise StoreError(
                f"{error}. In this process: patch_tcpstore(allow_unauthenticated=True)"
            ) from error
        except MusterError as error:
            raise as_torch(error) from error
        _servers[served.port] = served
        return served


def _started(host: str, port: int, descriptor: int | None) -> Server:
    where: str | int
    if descriptor is None:
        where = f":{port}" if _unauthenticated_allowed else f"{_bracketed(host)}:{port}"
    else:
        where = _listening(descriptor)
    users = {os.geteuid(), 0}
    try:
        server = Server(
            f"unix:@muster-tcpstore-{os.urandom(8).hex()}",  # for musterctl
            credentials="".join(f"unix:uid={user} * admin as=job\n" for user in users),
            tcpstore=where, allow_unauthenticated_tcpstore=_unauthenticated_allowed,
            tcpstore_dialect=_DIALECT, tcpstore_idle_lifetime=LIFETIME_S,
            memory_bytes_max=MEMORY_BYTES, tcpstore_memory_bytes_max=MEMORY_BYTES,
            key_bytes_max=KEY_BYTES_MAX, value_bytes_max=VALUE_BYTES_MAX, label="TCPStore",
        )
    except BaseException:
        if isinstance(where, int):
            os.close(where)
        raise
    _log.info("TCPStore of this process at port %d: musterctl --server %s --namespace tcpstore why",
              server.tcpstore_ports[0], server.addresses[0])
    if descriptor is None and not _unauthenticated_allowed and _is_name(host):
        _log.warning("TCPStore: %s is a loopback address here, which only processes of this host "
                     "reach. For others: patch_tcpstore(allow_unauthenticated=True)", host)
    return server


def _listening(descriptor: int) -> int:
    """A descriptor of its own of the caller's socket."""
    try:
        copy = os.dup(descriptor)
        try:
            listening = socket.socket(fileno=copy)
        except OSError:  # it is no socket
            os.close(copy)
            raise
        with listening:
            listening.listen(BACKLOG)
            return listening.detach()
    except (OSError, OverflowError) as error:
        raise NetworkError(
            f"The server socket of master_listen_fd={descriptor} cannot listen: {error}"
        ) from error


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _is_name(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host != "localhost"
    return False


def _is_agents(port: int) -> bool:
    """As torch: a rank of torchrun does not serve where its agent listens, at the job's port."""
    uses = os.environ.get("TORCHELASTIC_USE_AGENT_STORE", "").lower() in ("1", "true", "y", "yes")
    return uses and os.environ.get("MASTER_PORT") == str(port)


def await_others(host: str, port: int, world_size: int, timeout: timedelta) -> None:
    """Waits until the other workers have counted themselves, at the key that torch's clients have
    for that and cannot read: so it asks by a connection of its own. The master's client comes last:
    that of torch 1 does not survive the end of the server, if the time is up.

    errors  of torch: the time is up, the server has ended
    """
    until = time.monotonic() + timeout.total_seconds()
    question = _GET + struct.pack("<Q", len(_WORKERS)) + _WORKERS
    try:
        with socket.create_connection((host, port), ANSWER_S) as connection:
            connection.sendall(_VALIDATE)
            while True:
                connection.sendall(question)
                (size,) = struct.unpack("<Q", _received(connection, 8))
                joined = int(_received(connection, size) or b"0") + 1
                if joined >= world_size:
                    return
                if time.monotonic() >= until:
                    raise StoreError(
                        f"Timed out after {int(timeout.total_seconds())} seconds waiting for "
                        f"clients. {joined}/{world_size} clients joined."
                    )
                time.sleep(POLL_S)
    except OSError as error:
        raise NetworkError(f"Muster's server for TCPStore does not answer: {error}") from error


def _received(connection: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        more = connection.recv(size - len(got))
        if not more:
            raise NetworkError("Muster's server for TCPStore has ended")
        got += more
    return got


class _Kind(type(dist.TCPStore)):  # type: ignore[misc]
    """Stores of torch's own class are TCPStores, too: those that C++ has made, such as clones and
    what a PrefixStore gives as its ``underlying_store``, and those from before a patch."""

    def __instancecheck__(cls, instance: object) -> bool:
        if cls is TCPStore:
            return isinstance(instance, torchs)
        return bool(super().__instancecheck__(instance))


class TCPStore(torchs, metaclass=_Kind):  # type: ignore[misc]
    """torch's TCPStore, which starts Muster's server where it is the master.

    The arguments are torch's, also by position. ``use_libuv`` is for the client alone.
    ``master_listen_fd`` is the store's own once the constructor has returned, as with torch's: it
    is closed with the server.

    errors  as torch's: ValueError; DistNetworkError (the address is in use, no server answers),
            DistStoreError (workers have not come in time; other machines can reach the address and
            ``patch_tcpstore(allow_unauthenticated=True)`` does not allow that); before torch 2.2
            RuntimeError
    """

    def __init__(
        self,
        host_name: str,
        port: int = DEFAULT_PORT,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        seconds: Any = timeout
        patience = timeout if isinstance(timeout, timedelta) else timedelta(seconds=seconds)
        count = None if world_size is None else operator.index(world_size)
        given = (count, False, patience, wait_for_workers)
        options = {"use_libuv": use_libuv} if _KNOWS_LIBUV else {}
        served = None
        if is_master:
            if not isinstance(host_name, str) or not 0 <= operator.index(port) < 1 << 16:
                raise TypeError(f"TCPStore: no host name {host_name!r} or no port {port!r}")
            served = serve(host_name, operator.index(port), master_listen_fd, multi_tenant)
        if served is None:
            super().__init__(host_name, port, *given, **options)
            return
        try:
            if wait_for_workers and count is not None and count > 1:
                await_others(host_name, served.port, count, patience)
            super().__init__(host_name, served.port, *given, **options)
        except BaseException:
            served.refuse()
            raise
        weakref.finalize(self, served.leave).atexit = False


@names_keywords
def patch_tcpstore(*, allow_unauthenticated: bool = False) -> Patch:
    """Puts a class of Muster's, derived from torch's, in the place of TCPStore, in this process.

    Every module that has TCPStore under some name has this one then, also modules that are imported
    later, ``torch.distributed`` and its rendezvous among them. Subclasses of TCPStore and defaults
    of arguments that were there before are not reached. The process that is the master (rank 0, or
    the agent of torchrun that hosts the rendezvous) has to be patched; for others it changes
    nothing.

    Clients of TCPStore cannot say who they are. So a master serves at loopback alone and refuses a
    ``host_name`` that other machines reach.

    allow_unauthenticated  a master serves at all addresses of this machine, as torch's does, and
                           every client there may read and change all keys
    returns                what undoes it, also that permission, by ``undo()`` or as a context
                           manager; stores that are there stay
    """
    global _unauthenticated_allowed
    check_permission(allow_unauthenticated)
    before = _unauthenticated_allowed
    _unauthenticated_allowed = before or allow_unauthenticated

    def restore() -> None:
        global _unauthenticated_allowed
        _unauthenticated_allowed = before

    return Patch(torchs, TCPStore, restore)
