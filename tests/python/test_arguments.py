"""Arguments of every public function: other types and values are refused by the argument's name."""

from __future__ import annotations

import array
import copy
import ctypes
import gc
import math
import mmap
import pickle
import re
import weakref
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import muster
import public_calls
import pytest
from muster import gloo
from public_calls import WRONG, Call, Things, fits, wrong_values

CALLS = {call.name: call for call in public_calls.calls()}
CLASSES = {public_calls.name_of(one): one for one in public_calls.classes()}
PUBLIC = public_calls.public()
FOREIGN_TEXTS = re.compile(r"C\+\+|arg\d|Invoked with|incompatible function|std::|pybind")
# What an error calls an argument, where that has a longer name.
OTHER_NAMES = {"data_expiration_seconds": "data_expiration", "store_timeout": "timeout"}
# Any object may be given there.
TAKES_ALL = {
    "Operator.__init__", "aio.Operator.__init__", "Watch.__init__", "Runtime.abort",
    "muster.communicator.scaled_sum", "aio.Store.__init__", "aio.StatelessProcessGroup.__init__",
    "Communicator.__init__", "Turn.__init__", "RankGroup.__init__",
}


@pytest.fixture(scope="module")
def things(address: str) -> Iterator[Things]:
    made = Things(address, "arguments")
    yield made
    made.store.close()


def needs_gloo(name: str) -> bool:
    return name.startswith("Communicator") and not gloo.is_available()


def refused(things: Things, call: Call, name: str, value: Any) -> BaseException:
    arguments = {**things.arguments(call), name: value}
    try:
        given = things.make(call, arguments)
    except Exception as error:
        return error
    pytest.fail(f"{call.name}({name}={value!r}) gave {given!r}")


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_wrong_argument_is_refused_by_its_name(things: Things, name: str) -> None:
    call = CALLS[name]
    if needs_gloo(name):
        pytest.skip("this build has no Gloo")
    if name in TAKES_ALL:
        return
    for parameter in call.parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        hint = call.hints.get(parameter.name, Any)
        shown = OTHER_NAMES.get(parameter.name, parameter.name)
        for value in WRONG:
            if fits(value, hint, parameter.name):
                continue
            error = refused(things, call, parameter.name, value)
            told = f"{name}({parameter.name}={value!r}): {type(error).__name__}: {error}"
            assert type(error) is TypeError and shown in str(error), told
            assert not FOREIGN_TEXTS.search(str(error)), told
        for value in wrong_values(hint, parameter.name):
            error = refused(things, call, parameter.name, value)
            told = f"{name}({parameter.name}={value!r}): {type(error).__name__}: {error}"
            assert isinstance(error, ValueError) and shown in str(error), told
            assert not FOREIGN_TEXTS.search(str(error)), told


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_missing_or_unknown_argument_is_named(things: Things, name: str) -> None:
    call = CALLS[name]
    if needs_gloo(name):
        pytest.skip("this build has no Gloo")
    required = things.arguments(call)
    for missing in required:
        if missing == "objs":
            continue  # needed by the root alone
        given = {key: value for key, value in required.items() if key != missing}
        with pytest.raises(TypeError, match=missing) as raised:
            things.make(call, given)
        assert not FOREIGN_TEXTS.search(str(raised.value))
    with pytest.raises(TypeError, match="nonsense") as raised:
        things.make(call, {**required, "nonsense": 1})
    assert not FOREIGN_TEXTS.search(str(raised.value))


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_what_is_public_names_its_keywords_and_has_types_and_docstrings(name: str) -> None:
    public_calls.check_public(name, PUBLIC[name])


# Scalars and buffers.


def test_every_buffer_is_bytes(store: muster.Store) -> None:
    numbers = array.array("i", [1, 2])
    memory = mmap.mmap(-1, 4)
    memory.write(b"mmap")
    values: list[muster.BytesLike] = [
        numbers, memory, memoryview(numbers), bytearray(b"b"), (ctypes.c_int * 2)(1, 2),
    ]
    for value in values:
        store.set("k", value)
        assert store.get("k") == bytes(value)
    store.multi_set({b"k": numbers})
    assert store.compare_set(array.array("b", b"k"), numbers, memory).applied
    memory.close()  # its buffer was given back


@pytest.mark.parametrize("scalar", [
    "int64(5)", "uint8(5)", "float32(1.5)", "float64(1.5)", "bool_(True)", "complex64(1)",
    "datetime64(5, 's')", "timedelta64(5, 's')",
])
def test_a_number_of_numpy_is_not_its_bytes(store: muster.Store, scalar: str) -> None:
    np: Any = pytest.importorskip("numpy")
    number = eval(f"np.{scalar}", {"np": np})
    group = muster.StatelessProcessGroup(store, "numpy", 0, 1)
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: store.set("k", number), "value"), (lambda: store.get(number), "key"),
        (lambda: store.append("k", number), "suffix"), (lambda: store.exists(number), "key"),
        (lambda: store.queue_push("k", number), "item"),
        (lambda: store.compare_set("k", number, b""), "expected"),
        (lambda: store.compare_set("k", None, number), "desired"),
        (lambda: store.multi_get([number]), "keys"),
        (lambda: store.multi_set({"k": number}), "entries"),
        (lambda: group.send_obj(number, 0, codec=muster.RAW), "obj"),
        (lambda: group.all_gather_obj(number, codec=muster.RAW), "obj"),
        (lambda: muster.StatelessProcessGroup(store, "i", 0, 1, info=number), "info"),
    ]
    for call, name in calls:
        with pytest.raises(TypeError, match=f"^{name}: bytes, .* or a str such as"):
            call()
    assert not store.exists("k") and store.queue_length("k") == 0


def test_text_of_numpy_is_bytes(store: muster.Store) -> None:
    np: Any = pytest.importorskip("numpy")
    for value, stored in ((np.bytes_(b"b"), b"b"), (np.str_("s"), b"s"), (np.void(b"v"), b"v")):
        store.set("k", value)
        assert store.get("k") == stored
    assert store.multi_get(np.array(["k", "none"])) == [b"v", None]


def test_numbers_of_numpy_are_numbers(store: muster.Store) -> None:
    np: Any = pytest.importorskip("numpy")
    assert store.add("n", np.int64(4)) == 4
    assert store.add("n", np.uint8(1), timeout=np.float32(5)) == 5
    assert store.set("n", b"5", only_if_absent=np.bool_(True)) is False
    store.touch("n", np.int32(7))
    assert 6 < (store.list("n").keys[0].ttl or 0) <= 7
    group = muster.StatelessProcessGroup(store, "numpy", np.int32(0), np.int64(1))
    group.send_obj(1, np.int8(0), tag=np.uint64(2**64 - 1))
    assert group.recv_obj(0, tag=2**64 - 1) == 1
    for number in (np.int64(3), np.float32(1.5), np.bool_(True), np.array(3)):
        given = muster.runtime.all_reduce_value(group, number, "max")
        assert given == number and type(given) is type(number.item())
    assert len(muster.runtime.DistributedSampler(np.int64(5))) == 5
    with pytest.raises(OverflowError, match="^value: an int of 64 bits"):
        muster.runtime.all_reduce_value(group, np.uint64(2**63))
    for wrong in (np.timedelta64(5, "ms"), np.array([1, 2]), np.complex64(1)):
        with pytest.raises(TypeError, match="timeout: a number of seconds or a timedelta"):
            store.get("n", timeout=wrong)


def test_a_time_to_live_without_an_end_is_none(store: muster.Store) -> None:
    def ttl_of(key: str) -> float | None:
        return store.list(key).keys[0].ttl

    times: list[Any] = [math.inf, timedelta.max, 10**400, None]
    for endless in times:
        store.set("k", b"v", ttl=5)
        store.touch("k", endless)
        assert ttl_of("k") is None
        store.set("s", b"v", ttl=endless)
        assert ttl_of("s") is None
        store.compare_set("c", None, b"v", ttl=endless)
        store.multi_set({"m": b"v"}, ttl=endless)
        assert ttl_of("c") is ttl_of("m") is None
        store.remove("c")
    store.touch("k", 10 * 365 * 86400)
    assert (ttl_of("k") or 0) > 9 * 365 * 86400
    assert store.get("k", timeout=math.inf) == b"v"


def test_text_that_utf8_does_not_have_is_refused_by_name(store: muster.Store) -> None:
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: store.get("\ud800"), "key"), (lambda: store.set("k", "\ud800"), "value"),
        (lambda: muster.Store("\ud800"), "address"),
        (lambda: muster.StatelessProcessGroup(store, "\ud800", 0, 1), "name"),
        (lambda: muster.runtime.Environment({"RANK": "\udcff"}), "variables"),
    ]
    for call, name in calls:
        with pytest.raises(ValueError, match=f"^{name}: a str that UTF-8 does not have"):
            call()


def test_a_buffer_that_was_released_is_named(store: muster.Store) -> None:
    released, closed = memoryview(b"v"), mmap.mmap(-1, 4)
    released.release()
    closed.close()
    group = muster.StatelessProcessGroup(store, "released", 0, 1)
    for value, text in ((released, "released memoryview"), (closed, "mmap closed")):
        calls: list[tuple[Callable[[Any], object], str]] = [
            (lambda one: store.set("k", one), "value"), (lambda one: store.get(one), "key"),
            (lambda one: store.append("k", one), "suffix"),
            (lambda one: store.queue_push("k", one), "item"),
            (lambda one: store.compare_set("k", one, b""), "expected"),
            (lambda one: store.compare_set("k", None, one), "desired"),
            (lambda one: store.multi_get([one]), "keys"),
            (lambda one: store.multi_set({"k": one}), "entries"),
            (lambda one: group.send_obj(one, 0, codec=muster.RAW), "obj"),
            (lambda one: muster.StatelessProcessGroup(store, "i", 0, 1, info=one), "info"),
            (lambda one: muster.runtime.broadcast_tensor(group, one), "tensor"),
            (lambda one: muster.nccl.unique_id(group, 5, id=one), "id"),
        ]
        for call, name in calls:
            with pytest.raises(ValueError, match=f"^{name}: .*{text}"):
                call(value)


def test_a_loss_of_numbers_is_no_argument_of_another_operation(things: Things) -> None:
    """Counts that are missing or empty once made a receive of a gather."""
    if not gloo.is_available():
        pytest.skip("this build has no Gloo")
    communicator = things.of(muster.communicator.Communicator)
    one = array.array("f", [1])
    for name in ("all_gather_v", "reduce_scatter_v", "gather_v", "scatter_v"):
        with pytest.raises(muster.InvalidArgument, match="counts: one for each of 1 ranks"):
            getattr(communicator, name)(one, one, [])


# Objects.


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_objects_are_printed_and_referred_to_weakly(things: Things, name: str) -> None:
    if needs_gloo(name):
        pytest.skip("this build has no Gloo")
    one = things.of(CLASSES[name])
    assert weakref.ref(one)() is one
    assert CLASSES[name].__name__ in repr(one)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_objects_of_this_process_are_not_pickled_or_copied(things: Things, name: str) -> None:
    if needs_gloo(name):
        pytest.skip("this build has no Gloo")
    one = things.of(CLASSES[name])
    if name == "Mesh":  # plain data
        again = pickle.loads(pickle.dumps(one))
        assert (again.dimensions, again.ranks) == (one.dimensions, one.ranks)
        return
    ways: list[Any] = [lambda each=each: pickle.dumps(one, each) for each in range(6)]
    for way in (*ways, lambda: copy.copy(one), lambda: copy.deepcopy([one])):
        with pytest.raises(TypeError, match=f"{CLASSES[name].__name__} cannot be pickled.*: .+"):
            way()


def test_plain_data_is_pickled() -> None:
    for codec in (muster.JSON, muster.MSGPACK, muster.PICKLE, muster.RAW):
        assert pickle.loads(pickle.dumps(codec)) is codec is copy.deepcopy(codec)
        assert repr(codec).startswith("muster.")
    for one in (
        muster.Compared(True, None), muster.Setting("a", "bytes", 1, 0, 2, None, ""),
        muster.nccl.Options(timeout=5), gloo.Options(on_end=print), muster.runtime.State(b"c"),
        muster.RankReport(1, True, "h", 2, "", "", 0.5, "", ""),
    ):
        assert pickle.loads(pickle.dumps(one)) == one == copy.deepcopy(one)
    for kind in {*muster.errors._CLASSES.values(), muster.MusterError}:
        error = pickle.loads(pickle.dumps(kind("it failed", code="x", happened="maybe")))
        assert (type(error), str(error), error.in_doubt) == (kind, "it failed", True)


def test_a_refused_argument_keeps_nothing(things: Things) -> None:
    """What a call was given is free again after its refusal."""
    class Text(str):
        pass

    value = Text("v")
    gone = weakref.ref(value)
    with pytest.raises(TypeError):
        things.store.set(value, 5)  # type: ignore[arg-type]
    del value
    gc.collect()
    assert gone() is None
