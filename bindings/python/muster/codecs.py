"""How objects become bytes.

Sender and receiver name the same codec, else the receiver gets :class:`~muster.CodecMismatch`. A
codec is any object with ``id``, ``encode`` and ``decode``; codecs of applications have ids from 256
on. Of those here only ``PICKLE`` can run code that the bytes choose, and it is used only where it
is named.

What arrives is what the codec decodes, on every rank, the sender included:

- ``JSON`` and ``MSGPACK`` make a list of a tuple, also of a NamedTuple, and the plain number, str,
  list or dict of an enum such as IntEnum and of every other subclass. Keys that would arrive as
  other keys are refused.
- ``MSGPACK`` makes bytes of a bytearray or memoryview; ``RAW`` of everything.
- ``PICKLE`` keeps classes, where the receiver can import them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol, Union

__all__ = ["BytesLike", "Codec", "JSON", "MSGPACK", "PICKLE", "RAW"]

# Any object with a contiguous buffer: bytes, bytearray, memoryview, array.array, mmap.mmap, an
# array of NumPy's.
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as BytesLike
elif sys.version_info >= (3, 12):
    from collections.abc import Buffer as BytesLike
else:
    BytesLike = Union[bytes, bytearray, memoryview]  # of other types Python 3.11 cannot say it


class Codec(Protocol):
    """Turns objects into bytes and back.

    ``encode`` and ``decode`` raise ValueError or TypeError for what they do not take.
    """

    @property
    def id(self) -> int: ...

    def encode(self, obj: Any, /) -> Any:
        """The object's bytes, or another object that has them as its buffer."""

    def decode(self, data: bytes, /) -> Any:
        """The object of these bytes."""


IDS_OF_APPLICATIONS = 256  # and above


class BuiltIn:
    """A codec of this module, pickled by its name."""

    _name = ""

    def __repr__(self) -> str:
        return f"muster.{self._name}"

    def __reduce__(self) -> str:
        return self._name


class _Raw(BuiltIn):
    """Bytes as they are: any object with a buffer, or a str as UTF-8; gives bytes. Shape and types
    of an array do not travel. A buffer of objects or other addresses is refused, and so is one
    number of NumPy's.

    Shared with C++: ``muster::RawCodec`` of a std::string.
    """

    id = 1
    _name = "RAW"

    def encode(self, obj: Any, /) -> Any:
        return obj

    def decode(self, data: bytes, /) -> bytes:
        return data


class _Json(BuiltIn):
    """JSON, for people and other languages. Shared with C++: ``muster::JsonCodec``.

    Takes dict with str as keys, list, tuple (which comes back as a list), str, int, float, bool and
    None. Other keys are refused at any depth, since JSON would make a str of them. So are numbers
    that JSON has not (nan, infinity), and objects deeper than Python's limit of recursion. C++
    reads none deeper than 128.
    """

    id = 3
    _name = "JSON"

    def encode(self, obj: Any, /) -> bytes:
        for one in _dicts_in(obj):
            if not all(type(key) is str for key in one):
                _check_json_keys(one)
        return json.dumps(
            obj, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_refuse
        ).encode()

    def decode(self, data: bytes, /) -> Any:
        try:
            return json.loads(data)
        except RecursionError:
            raise ValueError("json: too deep") from None


_SCALARS = frozenset({str, int, float, bool, type(None), bytes})


def _dicts_in(obj: Any) -> Iterator[dict[Any, Any]]:
    """Every dict of an object of dicts, lists and tuples, at every depth, once."""
    pending: list[Any] = [obj]
    seen: set[int] = set()
    while pending:
        one = pending.pop()
        if isinstance(one, dict):
            if type(one).items is not dict.items and len(list(one.items())) != dict.__len__(one):
                raise TypeError(f"the items() of this {type(one).__name__} are not those it has")
            yield one
            parts: Any = dict.values(one)
        elif isinstance(one, (list, tuple)):
            parts = one
        else:
            continue
        if id(one) in seen or _SCALARS.issuperset(map(type, parts)):
            continue
        seen.add(id(one))
        pending.extend(part for part in parts if type(part) not in _SCALARS)


def _check_json_keys(one: dict[Any, Any]) -> None:
    """A key of a subclass of str, such as a StrEnum's, arrives as the str that it is."""
    for key in one:
        if not isinstance(key, str):
            raise TypeError(
                f"json: a key is of type {type(key).__name__}, and JSON has str alone: use "
                "str(key), or PICKLE or MSGPACK"
            )
    if len({str.__str__(key) for key in one}) != len(one):
        raise TypeError("json: two keys of a subclass of str are the same str")


def _base_of(key: Any) -> Any:
    """What a key of a subclass of a scalar arrives as."""
    base: Any
    for base in (str, bytes, int, float):
        if isinstance(key, base) and type(key) not in _SCALARS:
            return base.__add__(key, base())
    return key


def _refuse(obj: Any) -> Any:
    hint = "; MSGPACK takes bytes, RAW nothing else" if isinstance(obj, (bytes, bytearray)) else ""
    raise TypeError(f"json: no form for an object of type {type(obj).__name__}{hint}")


class _MessagePack(BuiltIn):
    """MessagePack: as JSON, and bytes. Needs the package msgpack.

    Takes str, bytes, int, float, bool and None as keys. A tuple as a key is refused at any depth:
    the receiver would get a list, which is no key.
    """

    id = 8
    _name = "MSGPACK"

    def encode(self, obj: Any, /) -> Any:
        msgpack = _msgpack()
        for one in _dicts_in(obj):
            for key in one:
                if isinstance(key, (tuple, list, dict)) and not isinstance(key, msgpack.ExtType):
                    raise TypeError(
                        f"msgpack: a key is of type {type(key).__name__}, which would arrive as a "
                        "list or a dict: use str(key), or PICKLE"
                    )
            if len({_base_of(key) for key in one}) != len(one):
                raise TypeError("msgpack: two keys of a subclass arrive as one")
        return msgpack.packb(obj, use_bin_type=True)

    def decode(self, data: bytes, /) -> Any:
        try:
            return _msgpack().unpackb(data, raw=False, strict_map_key=False)
        except Exception as wrong:
            raise ValueError(f"msgpack: {type(wrong).__name__}: {wrong}") from None


def _msgpack() -> Any:
    try:
        import msgpack  # type: ignore[import]
    except ImportError:
        raise TypeError("MSGPACK needs the package msgpack, which is not installed") from None
    return msgpack


class _Pickle(BuiltIn):
    """Any object that pickle takes. **Whoever can send to this process can run code in it**: for
    groups whose ranks are all trusted, which a server with credentials ensures.
    """

    id = 9
    _name = "PICKLE"

    def encode(self, obj: Any, /) -> bytes:
        import pickle

        return pickle.dumps(obj, protocol=pickle.HIGHEST_PROTOCOL)

    def decode(self, data: bytes, /) -> Any:
        import pickle

        return pickle.loads(data)


RAW: Codec = _Raw()
JSON: Codec = _Json()
MSGPACK: Codec = _MessagePack()
PICKLE: Codec = _Pickle()
