#include "arguments.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "errors.h"
#include "muster/detail/secret_text.h"

namespace muster::python {

namespace {

/// Longer times count as 30 days anyway.
constexpr double seconds_max = 1e10;

Duration from_seconds(double seconds) {
  if (!std::isfinite(seconds)) {
    if (seconds > 0) return Duration(std::chrono::hours(24 * 365));
    throw py::value_error("a time is a finite number of seconds, or math.inf");
  }
  if (seconds < 0) throw py::value_error("a time is not negative");
  const double counted = std::min(seconds, seconds_max) * 1e6;
  return Duration(static_cast<Duration::rep>(std::ceil(counted)));
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

/// Gets the buffer of an object, whose memory is copied elsewhere: there addresses mean nothing.
void get_buffer(py::handle object, Py_buffer& buffer) {
  bool is_refused = false;
  if (PyObject_GetBuffer(object.ptr(), &buffer, PyBUF_FULL_RO) == 0) {
    is_refused = buffer.format != nullptr && has_addresses(buffer.format);
    is_refused = is_refused || has_hidden_addresses(buffer);
  } else {
    // Buffers have no format for dates of NumPy's, for instance.
    PyErr_Clear();
    if (PyObject_GetBuffer(object.ptr(), &buffer, PyBUF_SIMPLE) != 0) throw py::error_already_set();
    const py::object dtype = py::getattr(object, "dtype", py::none());
    is_refused = py::getattr(dtype, "hasobject", py::none()).is(py::handle(Py_True));
  }
  const bool is_contiguous = PyBuffer_IsContiguous(&buffer, 'C') != 0;
  if (is_contiguous && !is_refused) return;
  PyBuffer_Release(&buffer);
  const std::string type = Py_TYPE(object.ptr())->tp_name;
  if (is_contiguous) {
    throw py::type_error("the elements of this " + type + " are objects or pointers, whose " +
                         "addresses mean nothing elsewhere: give numbers, or send a list by a " +
                         "codec for objects");
  }
  throw py::buffer_error("the buffer of this " + type + " is not contiguous: give a copy");
}

/// As an int.
py::object index_of(py::handle object, std::string_view argument) {
  if (PyIndex_Check(object.ptr()) == 0) {
    Py_ssize_t bytes = 0;
    const char* const text =
        PyUnicode_Check(object.ptr()) ? PyUnicode_AsUTF8AndSize(object.ptr(), &bytes) : nullptr;
    if (text == nullptr) PyErr_Clear();
    const std::string secret = muster::detail::complaint_of_secret(
        argument, std::string_view(text == nullptr ? "" : text, static_cast<std::size_t>(bytes)));
    if (!secret.empty()) throw py::type_error(secret);
    throw py::type_error(std::string(argument) + ": an int, not " +
                         std::string(Py_TYPE(object.ptr())->tp_name));
  }
  PyObject* const index = PyNumber_Index(object.ptr());
  if (index == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(index);
}

/// Of a number that is none of float's, because it is too large, as the largest or a negative one.
double float_of(py::handle object) {
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

Bytes Bytes::of(py::handle object) {
  Bytes bytes;
  if (PyUnicode_Check(object.ptr())) {
    Py_ssize_t size = 0;
    const char* const data = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
    if (data == nullptr) throw py::error_already_set();
    bytes.text_ = py::reinterpret_borrow<py::object>(object);
    bytes.view_ = {data, static_cast<std::size_t>(size)};
    return bytes;
  }
  if (PyObject_CheckBuffer(object.ptr()) == 0) {
    throw py::type_error("bytes, another object with a buffer, or a str; not " +
                         std::string(Py_TYPE(object.ptr())->tp_name));
  }
  get_buffer(object, bytes.buffer_);
  bytes.view_ = {static_cast<const char*>(bytes.buffer_.buf),
                 static_cast<std::size_t>(bytes.buffer_.len)};
  return bytes;
}

OptionalBytes OptionalBytes::of(py::handle object) {
  if (object.is_none()) return {};
  return {Bytes::of(object)};
}

ManyBytes ManyBytes::of(py::handle iterable) {
  if (PyUnicode_Check(iterable.ptr()) != 0 || PyObject_CheckBuffer(iterable.ptr()) != 0)
    throw py::type_error("several keys or objects, such as a list of them; not one by itself");
  ManyBytes many;
  for (const py::handle element : py::iter(iterable)) many.all.push_back(Bytes::of(element));
  return many;
}

Entries Entries::of(py::handle pairs) {
  Entries entries;
  for (const py::handle pair : py::iter(pairs)) {
    const auto both = py::reinterpret_borrow<py::tuple>(pair);
    if (!PyTuple_Check(pair.ptr()) || both.size() != 2)
      throw py::type_error("pairs of a key and a value, such as a dict");
    entries.all.emplace_back(Bytes::of(both[0]), Bytes::of(both[1]));
  }
  return entries;
}

WriteChoice WriteChoice::of(py::handle ttl) {
  WriteChoice choice;
  choice.options.ttl = optional_duration_of(ttl);
  return choice;
}

SetChoice SetChoice::of(py::handle tuple) {
  const auto given = py::cast<py::tuple>(tuple);
  SetChoice choice;
  choice.options.ttl = optional_duration_of(given[0]);
  choice.options.only_if_absent = argument_of<bool>(given[1], "only_if_absent");
  choice.options.bind_to_session = argument_of<bool>(given[2], "bind_to_session");
  return choice;
}

RegroupChoice RegroupChoice::of(py::handle tuple) {
  const auto given = py::cast<py::tuple>(tuple);
  RegroupChoice choice;
  choice.options.new_size = argument_of<int>(given[0], "new_size");
  choice.options.everyone = argument_of<bool>(given[1], "everyone");
  choice.options.min_size = argument_of<int>(given[2], "min_size");
  return choice;
}

RankChoice RankChoice::of(py::handle number) { return {Rank(argument_of<int>(number, "a rank"))}; }

TagChoice TagChoice::of(py::handle number) {
  return {Tag(argument_of<std::uint64_t>(number, "tag"))};
}

void refuse_type(py::handle object, std::string_view argument) {
  throw py::type_error(std::string(argument) + ": a value of the type " +
                       std::string(Py_TYPE(object.ptr())->tp_name) +
                       " does not fit, or has text that UTF-8 has not");
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

Duration duration_of(py::handle object, Duration otherwise) {
  if (object.is_none()) return otherwise;
  if (PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr()))
    return from_seconds(float_of(object));
  if (py::hasattr(object, "total_seconds"))
    return from_seconds(py::cast<double>(object.attr("total_seconds")()));
  try {
    return from_seconds(float_of(object));
  } catch (const py::error_already_set&) {
    throw py::type_error("a time is a number of seconds or a timedelta; not " +
                         std::string(Py_TYPE(object.ptr())->tp_name));
  }
}

std::optional<Duration> optional_duration_of(py::handle object) {
  if (object.is_none()) return std::nullopt;
  return duration_of(object, Duration(0));
}

}  // namespace muster::python
