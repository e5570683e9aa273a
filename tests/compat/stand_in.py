"""A constructor in the place of torch.distributed.TCPStore, for tests of others, unchanged.

``install()`` puts it there. What it makes is a muster.torch.Store, with what a TCPStore has beside
its keys: a port, a server where it is the master, and workers that are counted. Whose server cannot
be reached gets torch's words for it.
"""

import os
import sys
import time
from datetime import timedelta

import torch.distributed as dist
import torch.distributed.rpc

import muster
from muster.torch import Store
from muster.torch._errors import NetworkError, StoreError

NAMESPACE = "tcpstore"
WORKERS = "init/"
TIMEOUT = timedelta(seconds=300)
ConnectError = NetworkError if NetworkError is not RuntimeError else TimeoutError
torchs = dist.TCPStore
made_count = 0
servers = {}


class TCPStore(Store):
    def __init__(self, host_name, port, world_size=None, is_master=False, timeout=TIMEOUT,
                 wait_for_workers=True, multi_tenant=False, master_listen_fd=None,
                 use_libuv=True):
        global made_count
        if world_size == 0:
            raise ValueError("TCPStore world size cannot be 0")
        if master_listen_fd is not None:
            raise NotImplementedError("a listening socket is not taken over")
        made_count += 1
        self.host, self.libuvBackend = host_name, use_libuv
        self.server = serve(port, multi_tenant) if is_master else None
        self.port = self.server.port if self.server else port
        try:
            super().__init__(f"{host_name}:{self.port}", namespace=NAMESPACE, timeout=timeout)
        except RuntimeError as error:
            seconds = int(timeout.total_seconds())
            raise ConnectError(f"The client socket has timed out after {seconds}s while trying to "
                               f"connect to ({host_name}, {self.port}): {error}") from error
        if wait_for_workers and world_size is not None:
            self.meet(world_size, timeout)

    def meet(self, world_size, timeout):
        """As torch's: all count themselves, and the master waits for all."""
        joined = self.session.add(WORKERS, 1)
        deadline = time.monotonic() + timeout.total_seconds()
        while self.server is not None and joined < world_size:
            if time.monotonic() > deadline:
                raise StoreError(f"Timed out after {int(timeout.total_seconds())} seconds waiting "
                                 f"for clients. {joined}/{world_size} clients joined.")
            time.sleep(0.01)
            joined = int(self.session.get(WORKERS))


def serve(port, multi_tenant):
    """A server in this process; None where torchrun's agent has one."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") and os.environ["MASTER_PORT"] == str(port):
        return None
    if multi_tenant and port in servers:
        return servers[port]
    try:
        server = muster.Server(f"127.0.0.1:{port}")
    except muster.AddressInUse as error:
        raise NetworkError(f"The server socket has failed to listen on any local network address. "
                           f"port: {port}: {error}") from error
    servers[server.port] = server
    return server


def install():
    """In every module of torch that has read it."""
    for name, module in list(sys.modules.items()):
        if name.startswith("torch.") and vars(module).get("TCPStore") is torchs:
            module.TCPStore = TCPStore
