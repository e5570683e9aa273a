#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <pybind11/pybind11.h>

#include "muster/tensor.h"

// Tensors of Python's libraries, by DLPack's protocol (`__dlpack__` and `__dlpack_device__`) or by
// buffers; and those that Muster gives, which have both. All of it needs the GIL.

namespace muster::python {

namespace py = pybind11;

/// What a call does with a tensor.
enum class Use : std::uint8_t { read, write };
/// How its elements may lie.
enum class Layout : std::uint8_t { any, contiguous };

/// A tensor that Python gives, as an argument of this name.
///
/// stream  on which a call will use it, if it is on a device; null: the default one
/// errors  invalid_argument: it requires grad, is read-only where it would be written, or is not
///         contiguous where it has to be; or its library does not give it. TypeError: it is none
Tensor tensor_of_argument(py::handle object, std::string_view argument, Use use, Layout layout,
                          void* stream);

/// The name of a tensor in a dict. A str alone: a key that is none would arrive as another one.
///
/// errors  invalid_argument
std::string tensor_name_of(py::handle key);

/// A stream: an int, an object with `cuda_stream` or `__cuda_stream__`, or None for the default
/// one.
void* stream_of(py::handle object);

/// The tensor as an object.
py::object object_of(Tensor tensor);
/// The same of one whose memory something else keeps.
py::object object_of(const TensorView& view, std::shared_ptr<void> owner);

/// "cpu" or "cuda:1".
Device device_of(std::string_view name);
/// The sizes as a tuple.
py::tuple shape_of(const std::vector<std::int64_t>& shape);

}  // namespace muster::python
