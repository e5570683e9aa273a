"""A server inside this process. ``musterd`` is a server in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from muster import _core
from muster._events import as_logger
from muster._handles import Handle
from muster._keywords import iterable_of, names_keywords, refuse_type
from muster.store import Time

__all__ = ["Server"]


NAMESPACE_OF_TCPSTORE = "tcpstore"


def _ports_of(given: str | int | Sequence[str | int]) -> list[tuple[str, str, int]]:
    """Addresses, namespaces and descriptors, of which one is -1 or not used."""
    ports = []
    for one in [given] if isinstance(given, (str, int)) else iterable_of(given, "tcpstore"):
        if isinstance(one, str):
            address, equals, namespace = one.partition("=")
            ports.append((address, namespace if equals else NAMESPACE_OF_TCPSTORE, -1))
        elif not isinstance(one, int) or isinstance(one, bool):
            raise refuse_type(one, "tcpstore", "HOST:PORT[=NAMESPACE], or a descriptor")
        elif one < 0:
            raise ValueError(f"tcpstore: a descriptor is not negative: {one}")
        else:
            ports.append(("127.0.0.1:0", NAMESPACE_OF_TCPSTORE, one))
    return ports


@names_keywords
class Server(Handle):
    """Keeps keys and groups in memory: they are lost when it stops, and its clients are told so."""

    __slots__ = ("_handle",)
    _instead = "it serves in this process. Other processes connect to its addresses"

    def __init__(
        self,
        listen: str | Sequence[str] = "127.0.0.1:0",
        *,
        allow_unauthenticated: bool = False,
        credentials_file: str = "",
        credentials: str = "",
        server_name: str = "",
        certificate_file: str = "",
        certificate_key_file: str = "",
        client_authorities_file: str = "",
        tcpstore: str | int | Sequence[str | int] = (),
        allow_unauthenticated_tcpstore: bool = False,
        tcpstore_dialect: Literal["first", "second", "newest"] = "first",
        tcpstore_idle_lifetime: Time = _core.DEFAULTS.tcpstore_idle_lifetime,
        tcpstore_memory_bytes_max: int | None = None,
        label: str = "",
        session_timeout: Time = _core.DEFAULTS.session_timeout,
        heartbeat: Time = _core.DEFAULTS.heartbeat,
        grace: Time = _core.DEFAULTS.grace,
        memory_bytes_max: int | None = None,
        key_bytes_max: int | None = None,
        value_bytes_max: int | None = None,
    ) -> None:
        """Starts to listen, and serves on a thread of Muster's.

        listen    "host:port" (port 0: any free one), "unix:/path", "unix:@name", or several of
                  these
        tcpstore  a port for programs that use torch's TCPStore: "host:port", "host:port=namespace",
                  or the descriptor of a socket that listens, which the server then owns; or several
                  of these. Such a port authenticates no client, whatever the credentials say
        allow_unauthenticated_tcpstore
                  allows addresses in ``tcpstore`` that are not loopback
        errors    AddressInUse, PermissionDenied (an address that is not loopback, without
                  authentication), InvalidArgument, ValueError (tcpstore, tcpstore_dialect)
        other arguments  as in ``muster::ServerOptions``
        """
        self._handle = _core.start_server({
            "listen": [listen] if isinstance(listen, str) else listen,
            "allow_unauthenticated": allow_unauthenticated,
            "credentials_file": credentials_file,
            "credentials": credentials,
            "server_name": server_name,
            "certificate_file": certificate_file,
            "certificate_key_file": certificate_key_file,
            "client_authorities_file": client_authorities_file,
            "tcpstore": _ports_of(tcpstore),
            "allow_unauthenticated_tcpstore": allow_unauthenticated_tcpstore,
            "tcpstore_dialect": tcpstore_dialect,
            "tcpstore_idle_lifetime": tcpstore_idle_lifetime,
            "tcpstore_memory_bytes_max": tcpstore_memory_bytes_max,
            "label": label,
            "session_timeout": session_timeout,
            "heartbeat": heartbeat,
            "grace": grace,
            "memory_bytes_max": memory_bytes_max,
            "key_bytes_max": key_bytes_max,
            "value_bytes_max": value_bytes_max,
            "logger": as_logger(),
        })

    @property
    def addresses(self) -> list[str]:
        """Where it listens, with the ports, as ``Store`` takes them."""
        return self._handle.addresses()

    @property
    def port(self) -> int:
        """Of the first TCP address; 0: there is none."""
        return self._handle.port()

    @property
    def tcpstore_ports(self) -> list[int]:
        """The ports of ``tcpstore``, in its order."""
        return self._handle.tcpstore_ports()

    @property
    def incarnation(self) -> int:
        return self._handle.incarnation()

    def stop(self, reason: str = "the server was stopped", *, timeout: Time = 0.0) -> int:
        """Waits until all sessions have ended, then tells those that have not ``reason``, and
        stops. Ctrl-C ends the wait, and stops it, too.

        returns  the number of sessions that had not ended
        """
        return self._handle.stop(reason, timeout)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        stopped = ", stopped" if self._handle.is_stopped() else ""
        return f"<muster.Server at {', '.join(self.addresses)}{stopped}>"
