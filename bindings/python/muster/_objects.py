"""Objects through a codec, with errors that say which call they are of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from muster import _core
from muster.codecs import IDS_OF_APPLICATIONS, BuiltIn, Codec
from muster.errors import CodecFailure, RankReport


def encoded(codec: Codec, obj: Any, operation: str) -> Any:
    """What the codec makes of an object: bytes or what has a buffer. Raises CodecFailure; nothing
    was done."""
    if codec.id < IDS_OF_APPLICATIONS and not isinstance(codec, BuiltIn):
        raise ValueError(
            f"codec: its id is {codec.id}; those below {IDS_OF_APPLICATIONS} belong to Muster"
        )
    try:
        return codec.encode(obj)
    except Exception as wrong:  # of pickle, it may be any
        raise CodecFailure(
            f"{operation}: {wrong}", code="codec_failure", number=6, operation=operation,
            happened="no", detail=str(wrong), decided_by="client",
        ) from wrong


def decoded(codec: Codec, data: bytes, operation: str, rank: int) -> Any:
    """The object of a rank. Raises CodecFailure, which names the rank."""
    try:
        return codec.decode(data)
    except Exception as wrong:  # of pickle, it may be any
        raise CodecFailure(
            f"{operation}: the object of rank {rank}: {wrong}", code="codec_failure", number=6,
            operation=operation, detail=str(wrong), decided_by="client", rank_numbers=[rank],
            ranks=[RankReport(rank, True, "", 0, "", "", None, "", "")],
            happened="no" if operation == "recv_obj" else "maybe",
        ) from wrong


def decoder(codec: Codec, operation: str, rank: int) -> Callable[[bytes], Any]:
    """Decodes the object of a rank."""
    return lambda data: decoded(codec, data, operation, rank)


def decoder_of_all(codec: Codec, operation: str) -> Callable[[Sequence[bytes]], list[Any]]:
    """Decodes the objects of all ranks, by rank."""
    return lambda gathered: [
        decoded(codec, data, operation, rank) for rank, data in enumerate(gathered)
    ]


def has_pointers(kind: Any) -> bool:
    """Whether a type of ctypes has addresses: the formats of a union and of a packed structure do
    not say so."""
    element = getattr(kind, "_type_", None)
    if isinstance(element, str):
        return element in "PzZO"
    if element is not None:
        return not hasattr(kind, "_length_") or has_pointers(element)  # a pointer, or an array
    fields = [field for base in kind.__mro__ for field in vars(base).get("_fields_", ())]
    return hasattr(kind, "_restype_") or any(has_pointers(field[1]) for field in fields)


def accepted(codec: Codec, delivery: _core.Delivery, rank: int) -> tuple[Any, int]:
    """The object of a delivery, and its number. An object that cannot be decoded is not received:
    the next call gets it again.
    """
    try:
        obj = decoded(codec, delivery.bytes(), "recv_obj", rank)
    except BaseException:
        delivery.refuse()  # the exception's frames keep it
        raise
    return obj, delivery.accept()


def receiver(codec: Codec, rank: int) -> Callable[[_core.Delivery], Any]:
    """Accepts a delivery, and returns its object."""
    return lambda delivery: accepted(codec, delivery, rank)[0]
