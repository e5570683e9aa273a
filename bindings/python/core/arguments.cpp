#include "arguments.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "errors.h"
#include "muster/detail/secret_text.h"

namespace muster::python {

namespace {

/// Three hundred years: longer times count as this one, and a time to live as one without an end.
constexpr double seconds_max = 1e10;

Duration from_seconds(double seconds, std::string_view argument) {
  const std::string name(argument);
  if (std::isnan(seconds)) throw py::value_error(name + ": a number of seconds, not nan");
  if (seconds < 0) throw py::value_error(name + ": a time is not negative");
  const double counted = std::min(seconds, seconds_max) * 1e6;
  return Duration(static_cast<Duration::rep>(std::ceil(counted)));
}

[[noreturn]] void refuse_bytes(py::handle object, std::string_view argument) {
  const bool is_number = PyNumber_Check(object.ptr()) != 0;
  refuse_type(object, argument,
              is_number ? "bytes, another object with a buffer, or a str such as str(number)"
                        : "bytes, another object with a buffer, or a str");
}

/// The UTF-8 of a str, which keeps it.
std::string_view utf8_of(py::handle text, std::string_view argument) {
  Py_ssize_t size = 0;
  const char* const data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (data != nullptr) return {data, static_cast<std::size_t>(size)};
  if (PyErr_ExceptionMatches(PyExc_UnicodeEncodeError) == 0) throw py::error_already_set();
  PyErr_Clear();
  throw py::value_error(std::string(argument) + ": a str that UTF-8 does not have");
}

/// Whether the name of an object's type begins with this. So NumPy need not be imported.
bool is_of_type(py::handle object, std::string_view beginning) {
  const std::string_view type = Py_TYPE(object.ptr())->tp_name;
  return type.substr(0, beginning.size()) == beginning;
}

/// Whether elements of this format, as the module struct and ctypes write it, are addresses:
/// objects or pointers. A name in it is between colons, and a Z before f, d or g is a complex.
bool has_addresses(std::string_view format) {
  bool is_in_name = false;
  for (std::size_t at = 0; at < format.size(); ++at) {
    const char letter = format[at];
    if (letter == ':') is_in_name = !is_in_name;
    if (is_in_name) continue;
    if (std::string_view("OP&zX").find(letter) != std::string_view::npos) return true;
    const std::string_view next = format.substr(at + 1, 1);
    if (letter == 'Z' && next != "f" && next != "d" && next != "g") return true;
  }
  return false;
}

/// Whether a union or a packed structure of ctypes has pointers: its format is that of bytes.
bool has_hidden_addresses(const Py_buffer& buffer) {
  const bool is_of_bytes = buffer.format == nullptr || std::string_view(buffer.format) == "B";
  if (!is_of_bytes || buffer.itemsize == 1 || buffer.obj == nullptr) return false;
  py::object owner = py::reinterpret_borrow<py::object>(buffer.obj);
  while (PyMemoryView_Check(owner.ptr()) != 0) owner = owner.attr("obj");
  const py::object has_pointers = py::module_::import("muster._objects").attr("has_pointers");
  return py::cast<bool>(has_pointers(owner.attr("__class__")));
}

/// Whether it is a number or a date of NumPy's, and no array: its buffer is a few bytes that no
/// reader takes for that number.
bool is_scalar_of_numpy(py::handle object) {
  const auto classes = py::reinterpret_borrow<py::tuple>(Py_TYPE(object.ptr())->tp_mro);
  for (const py::handle each : classes) {
    const std::string_view name = reinterpret_cast<PyTypeObject*>(each.ptr())->tp_name;
    if (name != "numpy.generic") continue;
    const std::string kind = string_of(object.attr("dtype").attr("kind"), "dtype");
    return std::string_view("biufcmM").find(kind) != std::string_view::npos;
  }
  return false;
}

/// Gets the buffer of an object, whose memory is copied elsewhere: there addresses mean nothing.
void get_plain_buffer(py::handle object, std::string_view argument, Py_buffer& buffer) {
  bool is_refused = false;
  if (PyObject_GetBuffer(object.ptr(), &buffer, PyBUF_FULL_RO) == 0) {
    is_refused = buffer.format != nullptr && has_addresses(buffer.format);
    is_refused = is_refused || has_hidden_addresses(buffer);
  } else {
    // Buffers have no format for dates of NumPy's, for instance.
    PyErr_Clear();
    get_buffer(object, argument, buffer, PyBUF_SIMPLE);
    const py::object dtype = py::getattr(object, "dtype", py::none());
    is_refused = py::getattr(dtype, "hasobject", py::none()).is(py::handle(Py_True));
  }
  const bool is_contiguous = PyBuffer_IsContiguous(&buffer, 'C') != 0;
  if (is_contiguous && !is_refused) return;
  PyBuffer_Release(&buffer);
  const std::string name(argument);
  const std::string type = Py_TYPE(object.ptr())->tp_name;
  if (is_contiguous) {
    throw py::type_error(
        name + ": the elements of this " + type + " are objects or pointers, " +
        "whose addresses mean nothing elsewhere: give numbers, or send a list by " +
        "a codec for objects");
  }
  throw py::buffer_error(name + ": the buffer of this " + type + " is not contiguous: give a copy");
}

/// As an int.
py::object index_of(py::handle object, std::string_view argument) {
  if (PyIndex_Check(object.ptr()) == 0) {
    refuse_type(object, argument, "an int");
  }
  PyObject* const index = PyNumber_Index(object.ptr());
  if (index == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(index);
}

/// Of a number that is none of float's, because it is too large, as the largest or a negative one.
double seconds_of_number(py::handle object) {
  const double seconds = PyFloat_AsDouble(object.ptr());
  if (PyErr_Occurred() == nullptr) return seconds;
  if (PyErr_ExceptionMatches(PyExc_OverflowError) == 0) throw py::error_already_set();
  PyErr_Clear();
  return py::reinterpret_borrow<py::object>(object) < py::int_(0) ? -1 : seconds_max;
}

}  // namespace

Bytes::~Bytes() { release(); }

Bytes::Bytes(Bytes&& other) noexcept
    : view_(std::exchange(other.view_, {})),
      text_(std::move(other.text_)),
      buffer_(std::exchange(other.buffer_, Py_buffer{})) {}

Bytes& Bytes::operator=(Bytes&& other) noexcept {
  if (this == &other) return *this;
  release();
  view_ = std::exchange(other.view_, {});
  text_ = std::move(other.text_);
  buffer_ = std::exchange(other.buffer_, Py_buffer{});
  return *this;
}

void Bytes::release() noexcept {
  if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
}

Bytes Bytes::of(py::handle object, std::string_view argument) {
  Bytes bytes;
  if (PyUnicode_Check(object.ptr())) {
    bytes.view_ = utf8_of(object, argument);
    bytes.text_ = py::reinterpret_borrow<py::object>(object);
    return bytes;
  }
  if (PyObject_CheckBuffer(object.ptr()) == 0 || is_scalar_of_numpy(object))
    refuse_bytes(object, argument);
  get_plain_buffer(object, argument, bytes.buffer_);
  bytes.view_ = {static_cast<const char*>(bytes.buffer_.buf),
                 static_cast<std::size_t>(bytes.buffer_.len)};
  return bytes;
}

void get_buffer(py::handle object, std::string_view argument, Py_buffer& buffer, int flags) {
  if (PyObject_GetBuffer(object.ptr(), &buffer, flags) == 0) return;
  const py::error_already_set refused;
  for (PyObject* const kind : {PyExc_BufferError, PyExc_TypeError, PyExc_ValueError}) {
    if (!refused.matches(kind)) continue;
    const std::string text = string_of(py::str(refused.value()), argument);
    PyErr_SetString(kind, (std::string(argument) + ": " + text).c_str());
    throw py::error_already_set();
  }
  throw py::error_already_set(refused);
}

OptionalBytes OptionalBytes::of(py::handle object, std::string_view argument) {
  if (object.is_none()) return {};
  return {Bytes::of(object, argument)};
}

ManyBytes ManyBytes::of(py::handle iterable, std::string_view argument) {
  ManyBytes many;
  for (const py::handle element :
       iterator_of(iterable, argument, "several keys or objects, such as a list of them"))
    many.all.push_back(Bytes::of(element, argument));
  return many;
}

Entries Entries::of(py::handle pairs, std::string_view argument) {
  constexpr std::string_view expected = "pairs of a key and a value, such as a dict";
  Entries entries;
  for (const py::handle pair : iterator_of(pairs, argument, expected)) {
    const auto both = py::reinterpret_borrow<py::tuple>(pair);
    if (!PyTuple_Check(pair.ptr()) || both.size() != 2) refuse_type(pair, argument, expected);
    entries.all.emplace_back(Bytes::of(both[0], argument), Bytes::of(both[1], argument));
  }
  return entries;
}

TimeToLive TimeToLive::of(py::handle object, std::string_view argument) {
  const std::optional<Duration> duration = optional_duration_of(object, argument);
  if (duration && *duration >= from_seconds(seconds_max, argument)) return {};
  return {duration};
}

WriteChoice WriteChoice::of(py::handle ttl, std::string_view argument) {
  WriteChoice choice;
  choice.options.ttl = TimeToLive::of(ttl, argument).duration;
  return choice;
}

SetChoice SetChoice::of(py::handle tuple, std::string_view argument) {
  const auto given = argument_of<py::tuple>(tuple, argument);
  SetChoice choice;
  choice.options.ttl = TimeToLive::of(given[0], "ttl").duration;
  choice.options.only_if_absent = argument_of<bool>(given[1], "only_if_absent");
  choice.options.bind_to_session = argument_of<bool>(given[2], "bind_to_session");
  return choice;
}

RegroupChoice RegroupChoice::of(py::handle tuple, std::string_view argument) {
  const auto given = argument_of<py::tuple>(tuple, argument);
  RegroupChoice choice;
  choice.options.new_size = argument_of<int>(given[0], "new_size");
  choice.options.everyone = argument_of<bool>(given[1], "everyone");
  choice.options.min_size = argument_of<int>(given[2], "min_size");
  return choice;
}

void refuse_type(py::handle object, std::string_view argument, std::string_view expected) {
  Py_ssize_t size = 0;
  const char* const text =
      PyUnicode_Check(object.ptr()) ? PyUnicode_AsUTF8AndSize(object.ptr(), &size) : nullptr;
  PyErr_Clear();
  const std::string_view given(text == nullptr ? "" : text, static_cast<std::size_t>(size));
  const std::string secret = muster::detail::complaint_of_secret(argument, given);
  if (!secret.empty()) throw py::type_error(secret);
  throw py::type_error(std::string(argument) + ": " + std::string(expected) + ", not " +
                       Py_TYPE(object.ptr())->tp_name);
}

void refuse_class(py::handle object, std::string_view argument, py::handle expected) {
  refuse_type(object, argument, "a " + string_of(expected.attr("__name__"), "__name__"));
}

bool bool_of(py::handle object, std::string_view argument) {
  if (PyBool_Check(object.ptr()) != 0) return object.is(py::handle(Py_True));
  if (!is_of_type(object, "numpy.bool")) refuse_type(object, argument, "a bool");
  return PyObject_IsTrue(object.ptr()) == 1;
}

double double_of(py::handle object, std::string_view argument) {
  const double number = PyFloat_AsDouble(object.ptr());
  if (PyErr_Occurred() == nullptr) return number;
  const bool is_large = PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
  PyErr_Clear();
  if (is_large) refuse(argument, "it is too large for a float");
  refuse_type(object, argument, "a float");
}

std::string string_of(py::handle object, std::string_view argument) {
  if (PyUnicode_Check(object.ptr()) == 0) refuse_type(object, argument, "a str");
  return std::string(utf8_of(object, argument));
}

std::vector<std::string> strings_of(py::handle iterable, std::string_view argument) {
  std::vector<std::string> all;
  for (const py::handle element : iterator_of(iterable, argument, "several str, such as a list"))
    all.push_back(string_of(element, argument));
  return all;
}

py::dict dict_of(py::handle mapping, std::string_view argument) {
  if (PyDict_Check(mapping.ptr()) != 0) return py::reinterpret_borrow<py::dict>(mapping);
  if (!py::hasattr(mapping, "keys")) refuse_type(mapping, argument, "a dict or another mapping");
  py::dict all;
  if (PyDict_Update(all.ptr(), mapping.ptr()) != 0) throw py::error_already_set();
  return all;
}

py::iterator iterator_of(py::handle iterable, std::string_view argument,
                         std::string_view expected) {
  const bool is_one = PyUnicode_Check(iterable.ptr()) != 0 || PyBytes_Check(iterable.ptr()) != 0 ||
                      PyByteArray_Check(iterable.ptr()) != 0;
  PyObject* const iterator = is_one ? nullptr : PyObject_GetIter(iterable.ptr());
  if (iterator != nullptr) return py::reinterpret_steal<py::iterator>(iterator);
  if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_TypeError) == 0)
    throw py::error_already_set();
  PyErr_Clear();
  refuse_type(iterable, argument, expected);
}

std::int64_t integer_of(py::handle object, std::string_view argument, std::int64_t least,
                        std::int64_t most) {
  int overflow = 0;
  const std::int64_t number =
      PyLong_AsLongLongAndOverflow(index_of(object, argument).ptr(), &overflow);
  if (overflow == 0 && number >= least && number <= most) return number;
  refuse(argument, "an integer from " + std::to_string(least) + " to " + std::to_string(most));
}

std::uint64_t natural_of(py::handle object, std::string_view argument, std::uint64_t most) {
  const std::uint64_t number = PyLong_AsUnsignedLongLong(index_of(object, argument).ptr());
  const bool fits = PyErr_Occurred() == nullptr;
  PyErr_Clear();
  if (fits && number <= most) return number;
  refuse(argument, "an integer from 0 to " + std::to_string(most));
}

std::optional<std::string_view> taken(const OptionalBytes& bytes) {
  if (!bytes.bytes) return std::nullopt;
  return std::string_view(*bytes.bytes);
}

std::vector<std::string_view> taken(const ManyBytes& bytes) {
  return {bytes.all.begin(), bytes.all.end()};
}

std::vector<std::pair<std::string_view, std::string_view>> taken(const Entries& entries) {
  return {entries.all.begin(), entries.all.end()};
}

Duration duration_of(py::handle object, std::string_view argument, Duration otherwise) {
  if (object.is_none()) return otherwise;
  if (PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr()))
    return from_seconds(seconds_of_number(object), argument);
  if (py::hasattr(object, "total_seconds")) {
    const py::object seconds = object.attr("total_seconds")();
    return from_seconds(double_of(seconds, argument), argument);
  }
  // float() drops the unit of a timedelta64, and the second part of a complex number.
  const bool loses = is_of_type(object, "numpy.timedelta64") || is_of_type(object, "numpy.complex");
  if (PyNumber_Check(object.ptr()) != 0 && !loses) {
    const double seconds = PyFloat_AsDouble(object.ptr());
    if (PyErr_Occurred() == nullptr) return from_seconds(seconds, argument);
    PyErr_Clear();
  }
  refuse_type(object, argument, "a number of seconds or a timedelta");
}

std::optional<Duration> optional_duration_of(py::handle object, std::string_view argument) {
  if (object.is_none()) return std::nullopt;
  return duration_of(object, argument, Duration(0));
}

}  // namespace muster::python
