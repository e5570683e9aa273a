#include "tensors.h"

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "arguments.h"
#include "bind.h"
#include "errors.h"
#include "gil.h"
#include "muster/tensor_dlpack.h"

namespace muster::python {

namespace {

/// What Python holds of a tensor of Muster's. One in host memory has a buffer, too.
struct TensorHandle {
  TensorView view;
  std::shared_ptr<void> owner;

  Tensor tensor() const { return {view, owner}; }
};
struct HostTensorHandle : TensorHandle {};

constexpr const char* capsule_name = "dltensor";
constexpr const char* versioned_name = "dltensor_versioned";

// What Python's libraries give.

bool is_of_gpu(std::int32_t device_type) {
  return device_type != static_cast<std::int32_t>(DeviceType::cpu) &&
         device_type != static_cast<std::int32_t>(DeviceType::cuda_host) &&
         device_type != static_cast<std::int32_t>(DeviceType::rocm_host);
}

/// As `__dlpack__` takes it: CUDA's default stream is 1 there, ROCm's is 0.
py::object told_stream(std::int32_t device_type, void* stream) {
  if (!is_of_gpu(device_type)) return py::none();
  const auto number = reinterpret_cast<std::uintptr_t>(stream);
  if (number == 0 && device_type != static_cast<std::int32_t>(DeviceType::rocm)) return py::int_(1);
  return py::int_(number);
}

/// Asks for the versioned form, which older libraries do not know.
py::object capsule_of(py::handle object, void* stream) {
  const auto device = py::cast<py::tuple>(object.attr("__dlpack_device__")());
  const auto type = py::cast<std::int32_t>(py::int_(device[0]));
  py::dict arguments;
  if (is_of_gpu(type)) arguments["stream"] = told_stream(type, stream);
  py::dict newer = arguments;
  newer = py::reinterpret_steal<py::dict>(PyDict_Copy(arguments.ptr()));
  newer["max_version"] = py::make_tuple(dlpack::version.major, dlpack::version.minor);
  try {
    return object.attr("__dlpack__")(**newer);
  } catch (py::error_already_set& refused) {
    if (!refused.matches(PyExc_TypeError)) throw;
  }
  return object.attr("__dlpack__")(**arguments);
}

template <class Managed>
Result<Tensor> taken_from(py::handle capsule, const char* name, const char* used_name) {
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (managed == nullptr) throw py::error_already_set();
  if (PyCapsule_SetName(capsule.ptr(), used_name) != 0) throw py::error_already_set();
  return dlpack::import_tensor(managed);
}

Tensor tensor_of_capsule(const py::object& capsule, std::string_view argument) {
  if (PyCapsule_CheckExact(capsule.ptr()) == 0)
    refuse(argument, "what its __dlpack__ gives is no capsule");
  auto tensor = PyCapsule_IsValid(capsule.ptr(), versioned_name) != 0
                    ? taken_from<dlpack::ManagedTensorVersioned>(capsule, versioned_name,
                                                                 "used_dltensor_versioned")
                    : taken_from<dlpack::ManagedTensor>(capsule, capsule_name, "used_dltensor");
  if (!tensor) refuse(argument, tensor.error().detail);
  return *std::move(tensor);
}

struct Format {
  char letter;
  DtypeCode code;
};

/// Those of native order, as the module struct has them.
constexpr Format formats[] = {
    {'b', DtypeCode::signed_integer},   {'h', DtypeCode::signed_integer},
    {'i', DtypeCode::signed_integer},   {'l', DtypeCode::signed_integer},
    {'q', DtypeCode::signed_integer},   {'B', DtypeCode::unsigned_integer},
    {'H', DtypeCode::unsigned_integer}, {'I', DtypeCode::unsigned_integer},
    {'L', DtypeCode::unsigned_integer}, {'Q', DtypeCode::unsigned_integer},
    {'c', DtypeCode::unsigned_integer}, {'e', DtypeCode::floating},
    {'f', DtypeCode::floating},         {'d', DtypeCode::floating},
    {'?', DtypeCode::boolean},
};

Dtype dtype_of(const Py_buffer& buffer, std::string_view argument) {
  std::string_view text = buffer.format == nullptr ? "B" : buffer.format;
  const auto bits = static_cast<std::uint8_t>(8 * buffer.itemsize);
  if (text == "Zf" || text == "Zd") return {DtypeCode::complex, bits, 1};
  if (text.size() == 2 && (text[0] == '@' || text[0] == '=' || text[0] == '<'))
    text.remove_prefix(1);
  for (const Format& format : formats)
    if (text.size() == 1 && text[0] == format.letter) return {format.code, bits, 1};
  refuse(argument, "its elements have the format '" + std::string(text) +
                       "', which is no number in this machine's order");
}

/// Keeps the buffer, and gives it back from any thread.
std::shared_ptr<void> kept(Py_buffer& buffer) {
  auto* const own = new Py_buffer(buffer);
  return {own, [](void* given) {
            auto* const old = static_cast<Py_buffer*>(given);
            if (const WithGil held; held) PyBuffer_Release(old);
            delete old;
          }};
}

Tensor tensor_of_buffer(py::handle object, std::string_view argument) {
  Py_buffer buffer{};
  get_buffer(object, argument, buffer, PyBUF_RECORDS_RO);
  const std::shared_ptr<void> owner = kept(buffer);
  TensorView view;
  view.data = buffer.buf;
  view.dtype = dtype_of(buffer, argument);
  view.is_read_only = buffer.readonly != 0;
  for (int index = 0; index < buffer.ndim; ++index) {
    view.shape.push_back(buffer.shape[index]);
    if (buffer.strides[index] % buffer.itemsize != 0)
      refuse(argument, "its strides are no multiples of an element");
    view.strides.push_back(buffer.strides[index] / buffer.itemsize);
  }
  if (auto valid = validate(view); !valid) refuse(argument, valid.error().detail);
  return {std::move(view), owner};
}

bool has_buffer(py::handle object) { return PyObject_CheckBuffer(object.ptr()) != 0; }

/// What the library says that does not give its tensor.
std::string said(py::error_already_set& refused) { return std::string(py::str(refused.value())); }

Tensor tensor_of_object(py::handle object, std::string_view argument, void* stream) {
  if (py::isinstance<TensorHandle>(object)) return py::cast<TensorHandle&>(object).tensor();
  if (!py::hasattr(object, "__dlpack__")) {
    if (has_buffer(object)) return tensor_of_buffer(object, argument);
    refuse_type(object, argument, "a tensor with __dlpack__ or a buffer");
  }
  try {
    return tensor_of_capsule(capsule_of(object, stream), argument);
  } catch (py::error_already_set& refused) {
    const py::object own = py::module_::import("muster.errors").attr("MusterError");
    if (!refused.matches(PyExc_Exception) || refused.matches(own)) throw;
    // The old form of DLPack cannot say that a tensor is read-only, and the buffer of it can.
    if (has_buffer(object)) return tensor_of_buffer(object, argument);
    refuse(argument, "its library does not give it: " + said(refused));
  }
}

// What Muster gives.

/// A capsule that nobody has taken ends its tensor.
template <class Managed>
void end_capsule(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, name) == 0) return;
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed->deleter != nullptr) managed->deleter(managed);
}

template <class Managed>
py::object capsule_with(Result<Managed*> exported, const char* name, PyCapsule_Destructor end) {
  if (!exported) {
    PyErr_SetString(PyExc_BufferError, exported.error().detail.c_str());
    throw py::error_already_set();
  }
  PyObject* const capsule = PyCapsule_New(*exported, name, end);
  if (capsule == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(capsule);
}

/// The stream does not matter: what Muster gives in device memory is ready on the stream that its
/// call was given, whose consumer waits for it.
py::object dlpack_of(const TensorHandle& self, const py::object&, const py::object& max_version,
                     const py::object& device, const py::object& copy) {
  const auto own_device =
      py::make_tuple(static_cast<std::int32_t>(self.view.device.type), self.view.device.index);
  if ((!device.is_none() && !own_device.equal(device)) ||
      (!copy.is_none() && py::cast<bool>(copy))) {
    PyErr_SetString(PyExc_BufferError, "it is given where it is, and not copied");
    throw py::error_already_set();
  }
  const bool is_new =
      !max_version.is_none() && py::cast<int>(py::cast<py::tuple>(max_version)[0]) >= 1;
  if (is_new) {
    return capsule_with(dlpack::export_versioned(self.tensor()), versioned_name,
                        [](PyObject* capsule) {
                          end_capsule<dlpack::ManagedTensorVersioned>(capsule, versioned_name);
                        });
  }
  return capsule_with(dlpack::export_managed(self.tensor()), capsule_name, [](PyObject* capsule) {
    end_capsule<dlpack::ManagedTensor>(capsule, capsule_name);
  });
}

/// Empty: buffers have no such elements.
std::string format_of(Dtype dtype) {
  if (dtype.lanes != 1) return {};
  if (dtype.code == DtypeCode::complex) return dtype.bits == 64 ? "Zf" : "Zd";
  const std::string letters = dtype.code == DtypeCode::signed_integer     ? "bhiq"
                              : dtype.code == DtypeCode::unsigned_integer ? "BHIQ"
                              : dtype.code == DtypeCode::floating         ? " efd"
                              : dtype.code == DtypeCode::boolean          ? "?   "
                                                                          : "    ";
  const std::size_t index = dtype.bits == 8 ? 0 : dtype.bits == 16 ? 1 : dtype.bits == 32 ? 2 : 3;
  return letters[index] == ' ' ? std::string() : std::string(1, letters[index]);
}

/// Of elements that buffers do not have: their bytes.
py::buffer_info buffer_of(const TensorView& view) {
  auto* const first = static_cast<char*>(view.data) + view.byte_offset;
  const std::string format = format_of(view.dtype);
  if (format.empty()) {
    const auto bytes = static_cast<py::ssize_t>(view.byte_count());
    return {first, 1, "B", 1, {bytes}, {1}, view.is_read_only};
  }
  const auto item = static_cast<py::ssize_t>(view.dtype.byte_count());
  std::vector<py::ssize_t> shape(view.shape.begin(), view.shape.end());
  std::vector<py::ssize_t> strides(shape.size());
  py::ssize_t step = item;
  for (std::size_t index = shape.size(); index-- > 0;) {
    strides[index] = view.strides.empty() ? step : view.strides[index] * item;
    step *= shape[index];
  }
  return {first,
          item,
          format,
          static_cast<py::ssize_t>(shape.size()),
          std::move(shape),
          std::move(strides),
          view.is_read_only};
}

std::uintptr_t address_of_stream(py::handle object) {
  if (py::hasattr(object, "cuda_stream"))
    return argument_of<std::uintptr_t>(object.attr("cuda_stream"), "stream");
  if (py::hasattr(object, "__cuda_stream__")) {
    py::object told = object.attr("__cuda_stream__");
    if (PyCallable_Check(told.ptr()) != 0) told = told();
    return argument_of<std::uintptr_t>(argument_of<py::tuple>(told, "stream")[1], "stream");
  }
  refuse_type(object, "stream", "an int, an object with cuda_stream or __cuda_stream__, or None");
}

}  // namespace

Tensor tensor_of_argument(py::handle object, std::string_view argument, Use use, Layout layout,
                          void* stream) {
  if (py::getattr(object, "requires_grad", py::none()).is(py::handle(Py_True)))
    refuse(argument, "it requires grad, and this call has none: give its detach()");
  Tensor tensor = tensor_of_object(object, argument, stream);
  if (use == Use::write && tensor.view().is_read_only)
    refuse(argument, "it is read-only, and would be written");
  if (layout == Layout::contiguous && !tensor.view().is_contiguous())
    refuse(argument, "it is not contiguous: give a contiguous copy");
  return tensor;
}

std::string tensor_name_of(py::handle key) {
  if (PyUnicode_Check(key.ptr()) == 0)
    refuse("tensors", "a name is a str, not " + std::string(Py_TYPE(key.ptr())->tp_name));
  return string_of(key, "tensors: a name");
}

void* stream_of(py::handle object) {
  if (object.is_none()) return nullptr;
  const std::uintptr_t address = PyLong_Check(object.ptr()) != 0
                                     ? argument_of<std::uintptr_t>(object, "stream")
                                     : address_of_stream(object);
  return reinterpret_cast<void*>(address);
}

py::object object_of(Tensor tensor) { return object_of(tensor.view(), tensor.owner()); }

py::object object_of(const TensorView& view, std::shared_ptr<void> owner) {
  TensorHandle handle{view, std::move(owner)};
  if (!view.device.is_host()) return py::cast(std::move(handle));
  return py::cast(HostTensorHandle{std::move(handle)});
}

Device device_of(std::string_view name) {
  int index = 0;
  const std::string text(name);
  if (text == "cpu") return {};
  if (text == "cuda" || std::sscanf(text.c_str(), "cuda:%d", &index) == 1)
    return {DeviceType::cuda, index};
  if (text == "rocm" || std::sscanf(text.c_str(), "rocm:%d", &index) == 1)
    return {DeviceType::rocm, index};
  refuse_choice("device", "cpu, cuda:INDEX or rocm:INDEX", text);
}

py::tuple shape_of(const std::vector<std::int64_t>& shape) {
  py::tuple sizes(shape.size());
  for (std::size_t index = 0; index < shape.size(); ++index) sizes[index] = py::int_(shape[index]);
  return sizes;
}

void bind_tensors(py::module_& module) {
  py::class_<TensorHandle>(module, "Tensor", "A tensor that a call has given.")
      .def("__dlpack__", &dlpack_of, py::kw_only(), py::arg("stream") = py::none(),
           py::arg("max_version") = py::none(), py::arg("dl_device") = py::none(),
           py::arg("copy") = py::none())
      .def("__dlpack_device__",
           [](const TensorHandle& self) {
             return py::make_tuple(static_cast<std::int32_t>(self.view.device.type),
                                   self.view.device.index);
           })
      .def_property_readonly("shape",
                             [](const TensorHandle& self) { return shape_of(self.view.shape); })
      .def_property_readonly("dtype",
                             [](const TensorHandle& self) { return to_string(self.view.dtype); })
      .def_property_readonly("device",
                             [](const TensorHandle& self) { return to_string(self.view.device); })
      .def_property_readonly("nbytes",
                             [](const TensorHandle& self) { return self.view.byte_count(); })
      .def_property_readonly("is_read_only",
                             [](const TensorHandle& self) { return self.view.is_read_only; })
      .def(
          "__reduce__",
          [](const TensorHandle&) -> py::object {
            throw py::type_error(
                "a Tensor cannot be pickled or copied: it refers to memory of this process. Pickle "
                "an array of its elements, such as numpy.array(tensor)");
          })
      .def("__repr__", [](const TensorHandle& self) {
        return "<muster.runtime.Tensor " + to_string(self.view) + ">";
      });
  py::class_<HostTensorHandle, TensorHandle>(module, "HostTensor", py::buffer_protocol())
      .def_buffer([](const HostTensorHandle& self) { return buffer_of(self.view); });
}

}  // namespace muster::python
