"""Tensors of a library that nobody knows, by DLPack's protocol alone, and CUDA's driver by ctypes:
for tests without a library of tensors, and without a GPU."""

from __future__ import annotations

import ctypes
from typing import Any


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("index", ctypes.c_int32)]


class _Dtype(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device", _Device), ("ndim", ctypes.c_int32),
        ("dtype", _Dtype), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", _Deleter), ("flags", ctypes.c_uint64), ("tensor", _Tensor),
    ]


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

_lent: dict[int, Any] = {}


def lent_count() -> int:
    """How many tensors somebody has taken and not ended."""
    return len(_lent)


def _forget(address: int) -> None:
    _lent.pop(address)


_end = _Deleter(_forget)


class Foreign:
    """A tensor at an address. It notes how it was asked for."""

    def __init__(
        self,
        address: int,
        shape: tuple[int, ...],
        *,
        dtype: tuple[int, int] = (2, 32),
        device: tuple[int, int] = (1, 0),
        strides: tuple[int, ...] | None = None,
        read_only: bool = False,
        knows_versions: bool = True,
        requires_grad: bool = False,
        keeps: Any = None,
    ) -> None:
        self._address, self._shape, self._dtype = address, shape, dtype
        self._device, self._strides, self._read_only = device, strides, read_only
        self._knows_versions, self._keeps = knows_versions, keeps
        self.requires_grad = requires_grad
        self.asked: list[dict[str, Any]] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def __dlpack__(self, **asked: Any) -> Any:
        if not self._knows_versions and "max_version" in asked:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        self.asked.append(asked)
        count = len(self._shape)
        shape = (ctypes.c_int64 * max(count, 1))(*self._shape)
        strides = None
        if self._strides is not None:
            strides = (ctypes.c_int64 * max(count, 1))(*self._strides)
        tensor = _Tensor(
            self._address, _Device(*self._device), count, _Dtype(*self._dtype, 1), shape, strides, 0
        )
        managed: Any
        if self._knows_versions:
            managed = _Versioned(1, 0, None, _end, int(self._read_only), tensor)
        else:
            managed = _Managed(tensor, None, _end)
        address = ctypes.addressof(managed)
        _lent[address] = (managed, shape, strides, self)
        name = b"dltensor_versioned" if self._knows_versions else b"dltensor"
        return _new_capsule(address, name, None)


def host_tensor(numbers: list[float], **options: Any) -> tuple[Foreign, Any]:
    """A tensor of float32 in host memory, and its memory."""
    memory = (ctypes.c_float * len(numbers))(*numbers)
    shape = options.pop("shape", (len(numbers),))
    return Foreign(ctypes.addressof(memory), shape, keeps=memory, **options), memory


class Cuda:
    """A driver, or its double. Memory and streams are the caller's to keep."""

    def __init__(self, path: str, device: int) -> None:
        self.library = ctypes.CDLL(path)
        self.device = device
        self.context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)

    def call(self, name: str, *arguments: Any) -> None:
        result = getattr(self.library, name)(*arguments)
        assert result == 0, f"{name} gives {result}"

    def inside(self, name: str, *arguments: Any) -> None:
        """On this device, which is current for no longer than that."""
        self.call("cuCtxPushCurrent_v2", self.context)
        try:
            self.call(name, *arguments)
        finally:
            self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def stream(self) -> int:
        stream = ctypes.c_void_p()
        self.inside("cuStreamCreate", ctypes.byref(stream), 1)
        assert stream.value is not None
        return stream.value

    def synchronize(self, stream: int) -> None:
        self.inside("cuStreamSynchronize", ctypes.c_void_p(stream))

    def tensor(self, numbers: list[float], **options: Any) -> Foreign:
        """Of float32, on the device."""
        pointer = ctypes.c_uint64()
        self.inside("cuMemAlloc_v2", ctypes.byref(pointer), 4 * len(numbers))
        memory = (ctypes.c_float * len(numbers))(*numbers)
        self.inside("cuMemcpyHtoD_v2", pointer, memory, 4 * len(numbers))
        return Foreign(pointer.value, (len(numbers),), device=(2, self.device), **options)

    def numbers(self, tensor: Foreign) -> list[float]:
        count = tensor._shape[0]
        memory = (ctypes.c_float * count)()
        self.inside("cuMemcpyDtoH_v2", memory, ctypes.c_uint64(tensor._address), 4 * count)
        return list(memory)
