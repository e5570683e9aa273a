"""The cases of one store: what a server of TCPStore answers, as users of torch see it."""

import signal
import time

import torch.distributed as dist

from stage import (GET, SET, VERSION, Caller, NotThere, expect, expect_timeout, request, seconds,
                   text)

CLIENTS = 8
TIMES = 50


def set_and_get(stage):
    store = stage.store()
    for key, value in [("a", "1"), ("a", "2"), ("empty", ""), ("bytes", b"\0\xff"), ("", "no key"),
                       ("k" * 1000, "long key"), ("long", b"v" * (8 << 20))]:
        store.set(key, value)
        expect(store.get(key), value if isinstance(value, bytes) else value.encode())
    expect(stage.store().get("a"), b"2")


def a_get_waits_until_the_key_is_there(stage):
    getter = Caller(stage.store().get, "late")
    getter.expect_waits()
    stage.store().set("late", "it")
    expect(getter.result(), b"it")


def a_get_of_a_missing_key_times_out(stage):
    store = stage.store(timeout_s=0.3)
    expect_timeout(store.get, "missing")
    store.set("other", "1")
    expect(store.get("other"), b"1")


def add(stage):
    store = stage.store()
    expect([store.add("n", 5), store.add("n", -7), store.add("n", 0)], [5, -2, -2])
    expect(store.get("n"), b"-2")
    store.set("five", "5")
    expect(store.add("five", 2), 7)


def an_add_to_what_is_no_number_disturbs_nobody(stage):
    other = stage.store()
    other.set("word", "muster")
    try:
        found = stage.store(timeout_s=2).add("word", 1)
    except RuntimeError:
        expect(other.get("word"), b"muster")
        return
    raise AssertionError(f"{found} instead of an error")


def add_by_many_clients(stage):
    first = stage.store()
    first.add("n", 0)  # from now on, while it is connected, the keys stay

    def adds():
        store = stage.store()
        return [store.add("n", 1) for _ in range(TIMES)]

    callers = [Caller(adds) for _ in range(CLIENTS)]
    expect(sorted(number for caller in callers for number in caller.result()),
           list(range(1, CLIENTS * TIMES + 1)))
    expect(first.add("n", 0), CLIENTS * TIMES)


def compare_set(stage):
    store = stage.store()
    expect(store.compare_set("a", "other", "1"), b"other")  # there is no key, none is made
    expect(store.num_keys(), 0)
    expect(store.compare_set("a", "", "1"), b"1")
    expect(store.compare_set("a", "other", "2"), b"1")
    expect(store.compare_set("a", "1", "2"), b"2")
    expect(store.get("a"), b"2")


def compare_set_by_many_clients(stage):
    first = stage.store()
    first.add("n", 0)
    callers = [Caller(stage.store().compare_set, "first", "", f"client {number}")
               for number in range(CLIENTS)]
    results = {caller.result() for caller in callers}
    expect(results, {first.get("first")})


def append(stage):
    store = stage.store_that_can("append")
    store.append("text", "one ")
    store.append("text", "two")
    expect(store.get("text"), b"one two")


def an_append_wakes(stage):
    store = stage.store_that_can("append")
    getter = Caller(stage.store().get, "text")
    getter.expect_waits()
    store.append("text", "it")
    expect(getter.result(), b"it")


def multi_set_and_multi_get(stage):
    store = stage.store_that_can("multi_set", "multi_get")
    getter = Caller(stage.store().multi_get, ["a", "b"])
    getter.expect_waits()
    store.multi_set(["a", "b", "empty"], ["1", "2", ""])
    expect(getter.result(), [b"1", b"2"])
    expect(store.multi_get(["b", "empty", "a", "b"]), [b"2", b"", b"1", b"2"])


def thousands_of_keys_at_once(stage):
    store = stage.store_that_can("multi_set", "multi_get")
    keys = [f"key {number}" for number in range(20_000)]
    store.multi_set(keys, [key[4:] for key in keys])
    expect(store.multi_get(keys), [key[4:].encode() for key in keys])
    expect(store.check(keys) if hasattr(store, "check") else True, True)


def a_wait_for_thousands_of_keys(stage):
    store = stage.store()
    keys = [f"key {number}" for number in range(2000)]
    waiter = Caller(stage.store().wait, keys)
    for key in keys:
        store.set(key, "")
    waiter.result()


def check(stage):
    store = stage.store_that_can("check")
    store.set("a", "")
    expect([store.check(["a"]), store.check(["a", "b"]), store.check([])], [True, False, True])
    store.set("b", "")
    expect(store.check(["a", "b"]), True)


def a_wait_ends_when_all_keys_are_there(stage):
    store = stage.store()
    waiter = Caller(stage.store().wait, ["set", "added", "last", "set"])
    store.set("set", "1")
    store.add("added", 1)
    waiter.expect_waits()
    store.set("last", "")
    waiter.result()


def a_compare_set_wakes(stage):
    """The server of PyTorch 1 and 2.0 lets the waiter wait."""
    waiter = Caller(stage.store().wait, ["a"])
    waiter.expect_waits()
    stage.store().compare_set("a", "", "1")
    waiter.result()


def a_wait_counts_a_key_that_came_and_went(stage):
    """As torch's: each key is awaited by itself."""
    store = stage.store()
    waiter = Caller(stage.store().wait, ["came", "comes"])
    waiter.expect_waits()
    store.set("came", "1")
    store.delete_key("came")
    store.set("comes", "1")
    waiter.result()


def a_wait_that_times_out_leaves_the_client_usable(stage):
    store = stage.store()
    began = time.monotonic()
    expect_timeout(store.wait, ["missing"], seconds(0.25))
    expect(0.2 < time.monotonic() - began < 5, True)
    expect([store.add("n", 1), store.add("n", 1)], [1, 2])
    expect(store.get("n"), b"2")
    expect_timeout(store.wait, ["n", "missing"], seconds(0.25))
    if not hasattr(store, "append"):
        return  # this client cannot cancel a wait: its end would be taken for another answer
    stage.store().set("missing", "1")
    expect([store.get("missing"), store.get("n")], [b"1", b"2"])


def num_keys(stage):
    """With the key at which workers are counted, which TCPStore's constructor makes."""
    store = dist.TCPStore("127.0.0.1", stage.ports[0], 2, False, seconds(20))
    expect(store.num_keys(), 1)
    store.set("a", "1")
    store.set("a", "2")
    store.add("n", 1)
    expect(store.num_keys(), 3)
    dist.TCPStore("127.0.0.1", stage.ports[0], 2, False, seconds(20))
    expect(store.num_keys(), 3)


def delete_key(stage):
    store = stage.store(timeout_s=0.3)
    store.set("a", "1")
    expect([store.delete_key("a"), store.delete_key("a")], [True, False])
    expect(store.num_keys(), 0)
    expect_timeout(store.get, "a")


def queues(stage):
    store = stage.store_that_can("queue_push", "queue_pop", "queue_len")
    expect(store.queue_len("q"), 0)
    for item in ("1", "", "3"):
        store.queue_push("q", item)
    expect([store.queue_len("q"), store.num_keys()], [3, 0])
    other = stage.store()
    expect([other.queue_pop("q"), store.queue_pop("q", False), other.queue_pop("q")],
           [b"1", b"", b"3"])
    expect(store.queue_len("q"), 0)


def a_pop_from_an_empty_queue(stage):
    store = stage.store_that_can("queue_pop")
    try:
        found = store.queue_pop("q", False)
    except dist.QueueEmptyError:
        return
    raise AssertionError(f"{found!r} instead of QueueEmptyError")


def a_pop_waits(stage):
    store = stage.store_that_can("queue_push", "queue_pop")
    for _ in range(TIMES):
        popper = Caller(stage.store().queue_pop, "q")
        store.queue_push("q", "item")
        expect(popper.result(), b"item")
    popper = Caller(stage.store().queue_pop, "q")
    popper.expect_waits()
    store.queue_push("q", "last")
    expect(popper.result(), b"last")


def queues_in_both_directions(stage):
    stage.store_that_can("queue_push", "queue_pop")

    def answer():
        store = stage.store()
        for _ in range(TIMES):
            store.queue_push("answers", store.queue_pop("questions") + b"!")

    answerer = Caller(answer)
    store = stage.store()
    for number in range(TIMES):
        store.queue_push("questions", str(number))
        expect(store.queue_pop("answers"), b"%d!" % number)
    answerer.result()


def a_pop_times_out(stage):
    store = stage.store_that_can("queue_push", "queue_pop")
    store.set_timeout(seconds(0.01))
    expect_timeout(store.queue_pop, "q")
    store.set_timeout(seconds(10))
    store.queue_push("q", "item")
    expect(store.queue_pop("q"), b"item")


def list_keys(stage):
    store = stage.store_that_can("list_keys")
    expect(store.list_keys(), [])
    store.add("b", 1)
    store.set("a", "1")
    store.queue_push("q", "item")
    dist.PrefixStore("p", store).set("c", "1")
    expect(sorted(store.list_keys()), ["a", "b", "p/c"])


def barrier(stage):
    stage.store_that_can("barrier")
    callers = [Caller(stage.store().barrier, "b", CLIENTS, seconds(20))
               for _ in range(CLIENTS - 1)]
    callers[0].expect_waits()
    stage.store().barrier("b", CLIENTS, seconds(20))
    for caller in callers:
        caller.result()
    stage.store().barrier("b", CLIENTS, seconds(20))  # it has been reached once for all


def a_barrier_times_out(stage):
    store = stage.store_that_can("barrier")
    expect_timeout(store.barrier, "b", 2, seconds(0.2))
    store.set("a", "1")
    expect(store.get("a"), b"1")


def clone(stage):
    store = stage.store_that_can("clone")
    waiter = Caller(store.get, "a")
    waiter.expect_waits()
    store.clone().set("a", "1")  # the store itself is busy
    expect(waiter.result(), b"1")


def prefixes(stage):
    store = stage.store()
    inner = dist.PrefixStore("inner", dist.PrefixStore("outer", store))
    inner.set("a", "1")
    expect([inner.get("a"), store.get("outer/inner/a"), inner.add("n", 2)], [b"1", b"1", 2])
    expect(store.num_keys(), 2)
    inner.wait(["a", "n"])
    expect_timeout(inner.wait, ["a", "missing"], seconds(0.2))
    expect([inner.delete_key("a"), inner.delete_key("a")], [True, False])
    if hasattr(store, "multi_set") and hasattr(inner, "multi_set"):
        inner.multi_set(["x", "y"], ["1", "2"])
        expect(inner.multi_get(["y", "x"]), [b"2", b"1"])


def two_threads_with_a_store_each(stage):
    """What one sets the other waits for, in turns."""
    def turns(mine, others):
        store = stage.store()
        for number in range(TIMES):
            store.set(f"{mine} {number}", str(number))
            expect(store.get(f"{others} {number}"), b"%d" % number)

    callers = [Caller(turns, "a", "b"), Caller(turns, "b", "a")]
    for caller in callers:
        caller.result()


def two_threads_with_one_store(stage):
    store = stage.store()

    def work(name):
        for number in range(TIMES):
            store.set(f"{name} {number}", name)
            expect(store.get(f"{name} {number}"), name.encode())
            store.add("n", 1)

    callers = [Caller(work, "a"), Caller(work, "b")]
    for caller in callers:
        caller.result()
    expect(store.add("n", 0), 2 * TIMES)


def a_request_in_two_pieces(stage):
    """As in torch's own test: a SET is cut between its key and its value. A server of torch without
    libuv lets everybody wait meanwhile."""
    store = stage.store()
    for number in range(3):
        whole = request(SET, b"/cut", b"%d" % number)
        with stage.raw() as connection:
            connection.sendall(whole[:13])
            time.sleep(0.2)
            expect(store.add("others go on", 1), number + 1)
            connection.sendall(whole[13:] + request(GET, b"/cut"))
            expect(connection.recv(64), text(b"%d" % number))


def requests_byte_by_byte(stage):
    with stage.raw() as connection:
        for byte in request(SET, b"/slow", b"value") + request(GET, b"/slow"):
            connection.sendall(bytes([byte]))
            time.sleep(0.002)
        expect(connection.recv(64), text(b"value"))


def requests_at_once(stage):
    """Answers come in the order of the requests."""
    with stage.raw() as connection:
        connection.sendall(b"".join(request(SET, b"/k", b"%03d" % number) + request(GET, b"/k")
                                    for number in range(200)))
        wanted = b"".join(text(b"%03d" % number) for number in range(200))
        found = b""
        while len(found) < len(wanted):
            found += connection.recv(4096)
        expect(found, wanted)


def a_client_that_goes_away_while_it_waits(stage):
    store = stage.store()
    with stage.raw() as connection:
        wait = 5 if GET == 2 else 6
        connection.sendall(bytes([wait]) + (1).to_bytes(8, "little") + text(b"/awaited"))
        connection.sendall(request(SET, b"/half", b"")[:5])
    store.set("awaited", "1")
    expect(store.get("awaited"), b"1")


def a_signal_does_not_end_a_wait(stage):
    if VERSION == (2, 1):
        raise NotThere("a client that goes on after a signal: it takes it for a time-out")
    heard = []
    signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))
    signal.siginterrupt(signal.SIGUSR1, True)
    waiter = Caller(stage.store().wait, ["late"])
    for _ in range(3):
        waiter.expect_waits()
        signal.pthread_kill(waiter.ident, signal.SIGUSR1)
    waiter.expect_waits()
    expect(len(heard), 3)
    stage.store().set("late", "1")
    waiter.result()


def the_ports_know_nothing_of_each_other(stage):
    first, second = stage.store(which=0), stage.store(which=1)
    first.set("a", "1")
    expect([first.num_keys(), second.num_keys(), second.add("a", 5)], [1, 0, 5])
    expect(first.get("a"), b"1")


def many_clients(stage):
    stores = [stage.store() for _ in range(200)]
    for number, store in enumerate(stores):
        expect(store.add("n", 1), number + 1)
    waiter = Caller(stores[0].wait, ["end"])
    stores[-1].set("end", "")
    waiter.result()


STORE_CASES = [
    set_and_get, a_get_waits_until_the_key_is_there, a_get_of_a_missing_key_times_out, add,
    an_add_to_what_is_no_number_disturbs_nobody, add_by_many_clients, compare_set,
    compare_set_by_many_clients, append, an_append_wakes, multi_set_and_multi_get,
    thousands_of_keys_at_once, a_wait_for_thousands_of_keys, check,
    a_wait_ends_when_all_keys_are_there, a_compare_set_wakes,
    a_wait_counts_a_key_that_came_and_went,
    a_wait_that_times_out_leaves_the_client_usable, num_keys, delete_key, queues,
    a_pop_from_an_empty_queue, a_pop_waits, queues_in_both_directions, a_pop_times_out, list_keys,
    barrier, a_barrier_times_out, clone, prefixes, two_threads_with_a_store_each,
    two_threads_with_one_store, a_request_in_two_pieces, requests_byte_by_byte, requests_at_once,
    a_client_that_goes_away_while_it_waits, a_signal_does_not_end_a_wait,
    the_ports_know_nothing_of_each_other, many_clients,
]
