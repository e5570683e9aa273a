"""Calls everything that torch's client of TCPStore can do, for record.py.

    ask.py PORT   of the server at 127.0.0.1

Says each call on its standard output and goes on when a line comes on its standard input. Calls
that this version of torch lacks are left out.
"""

import datetime
import os
import sys
import time

import torch
import torch.distributed as dist

HOST = "127.0.0.1"
SHORT = datetime.timedelta(milliseconds=300)
PATIENCE = datetime.timedelta(seconds=5)


def tell(line):
    print(line, flush=True)
    sys.stdin.readline()


def ask(name, call, *arguments):
    """Says the call, and then its result."""
    tell(name)
    began = time.monotonic()
    try:
        result = repr(call(*arguments))
    except Exception as error:
        result = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    time.sleep(0.1)  # whatever it has sent is printed by then
    tell(f"    -> {result} [{time.monotonic() - began - 0.1:.1f} s]")


def calls_of(store):
    """What the client can do: the method, and its arguments."""
    return [
        ("set", "a", "1"), ("get", "a"), ("add", "n", 5), ("compare_set", "a", "1", "2"),
        ("check", ["a", "b"]), ("wait", ["a"]), ("wait", ["a", "n"], SHORT), ("num_keys",),
        ("delete_key", "a"), ("append", "t", "tail"), ("multi_set", ["x", "y"], ["1", "2"]),
        ("multi_get", ["x", "y"]), ("queue_push", "q", "item"), ("queue_len", "q"),
        ("queue_pop", "q"), ("queue_pop", "q", False), ("list_keys",),
        ("barrier", "b", 1, PATIENCE),
    ]


def ask_all(port):
    store = None

    def connect(*arguments, **options):
        nonlocal store
        store = dist.TCPStore(HOST, port, *arguments, timeout=PATIENCE, **options)

    tell(f"torch {torch.__version__}, process {os.getpid():#010x}: "
         f"{' '.join(name for name in dir(dist.TCPStore) if name[0] != '_')}")
    ask("TCPStore(world_size=None)", lambda: connect(None, False, wait_for_workers=False))
    ask("TCPStore(world_size=2)", lambda: connect(2, False))
    for method, *arguments in calls_of(store):
        if hasattr(store, method):
            ask(f"{method}{tuple(arguments)}", getattr(store, method), *arguments)
        else:
            tell(f"{method}: not there")
    ask("set of 4000 bytes", store.set, "long", "v" * 4000)
    ask("wait with a time-out", store.wait, ["missing"], SHORT)
    ask("get after the time-out", store.get, "n")
    ask("set of what was awaited", store.set, "missing", "it")
    ask("get after the set", store.get, "n")
    if hasattr(store, "clone"):
        ask("clone", lambda: store.clone().get("n"))
    ask_others(port)


def ask_others(port):
    """What uses a store: with one of its own each."""
    def new_store(seconds=5):
        return dist.TCPStore(HOST, port, None, False, datetime.timedelta(seconds=seconds),
                             wait_for_workers=False)

    ask("get with the store's time-out", lambda: new_store(1).get("never"))
    ask("PrefixStore", lambda: dist.PrefixStore("p", new_store()).set("a", "1"))
    ask("init_process_group", lambda: dist.init_process_group(
        "gloo", store=new_store(), rank=0, world_size=1))
    ask("barrier of torch.distributed", dist.barrier)
    ask("destroy_process_group", dist.destroy_process_group)


if __name__ == "__main__":
    ask_all(int(sys.argv[1]))
    tell("end")
    os._exit(0)  # threads of torch may still be there
