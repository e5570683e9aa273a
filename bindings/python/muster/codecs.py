"""How objects become bytes.

Sender and receiver name the same codec, else the receiver gets :class:`~muster.CodecMismatch`. A
codec is any object with ``id``, ``encode`` and ``decode``; codecs of applications use ids from 256
on. Of those here only ``PICKLE`` can run code that the bytes choose, and it is used only where it
is named.
"""

from __future__ import annotations

import json
from typing import Any, Protocol, Union

__all__ = ["BytesLike", "Codec", "JSON", "MSGPACK", "PICKLE", "RAW"]

BytesLike = Union[bytes, bytearray, memoryview]
"""Also every other object with a contiguous buffer, such as an array of NumPy's."""


class Codec(Protocol):
    """Turns objects into bytes and back.

    ``encode`` and ``decode`` raise ValueError or TypeError for what they do not take.
    """

    @property
    def id(self) -> int: ...

    def encode(self, obj: Any, /) -> Any: ...

    def decode(self, data: bytes, /) -> Any: ...


class _Raw:
    """Bytes as they are: any object with a buffer, or a str as UTF-8; gives bytes.

    Shared with C++: ``muster::RawCodec`` of a std::string.
    """

    id = 1

    def encode(self, obj: Any, /) -> Any:
        return obj

    def decode(self, data: bytes, /) -> bytes:
        return data


class _Json:
    """JSON, for people and other languages. Shared with C++: ``muster::JsonCodec``.

    Takes dict with str as keys, list, tuple (which comes back as a list), str, int, float, bool and
    None. Numbers that JSON has not (nan, infinity) are refused, as are texts deeper than 128.
    """

    id = 3

    def encode(self, obj: Any, /) -> bytes:
        return json.dumps(
            obj, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_refuse
        ).encode()

    def decode(self, data: bytes, /) -> Any:
        try:
            return json.loads(data)
        except RecursionError:
            raise ValueError("json: too deep") from None


def _refuse(obj: Any) -> Any:
    hint = "; MSGPACK takes bytes, RAW nothing else" if isinstance(obj, (bytes, bytearray)) else ""
    raise TypeError(f"json: no form for an object of type {type(obj).__name__}{hint}")


class _MessagePack:
    """MessagePack: as JSON, and bytes. Needs the package msgpack."""

    id = 8

    def encode(self, obj: Any, /) -> Any:
        return _msgpack().packb(obj, use_bin_type=True)

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


class _Pickle:
    """Any object that pickle takes. **Whoever can send to this process can run code in it**: for
    groups whose ranks are all trusted, which a server with credentials ensures.
    """

    id = 9

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
