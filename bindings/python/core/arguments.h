#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>

#include "muster/process_group_options.h"
#include "muster/store_options.h"
#include "muster/types.h"

// What Python gives, as Muster takes it.

namespace muster::python {

namespace py = pybind11;

/// Bytes of an argument: of a str as UTF-8, or of any object with a contiguous buffer, without a
/// copy. It keeps the object and its buffer.
class Bytes {
 public:
  Bytes() = default;
  ~Bytes();
  Bytes(Bytes&& other) noexcept;
  Bytes& operator=(Bytes&& other) noexcept;

  /// errors  TypeError, in the name of whoever asks
  static Bytes of(py::handle object);

  operator std::string_view() const { return view_; }

 private:
  void release() noexcept;

  std::string_view view_;
  py::object text_;
  Py_buffer buffer_{};
};

/// Seconds as a number, or a timedelta; None is `otherwise`.
///
/// errors  ValueError (negative, not finite), TypeError
Duration duration_of(py::handle object, Duration otherwise);
std::optional<Duration> optional_duration_of(py::handle object);

/// An integer of an argument: an int, or what has __index__. Not a float or a Decimal, whose
/// fraction would be lost.
///
/// errors  TypeError; invalid_argument: it is out of the range
std::int64_t integer_of(py::handle object, std::string_view argument, std::int64_t least,
                        std::int64_t most);
std::uint64_t natural_of(py::handle object, std::string_view argument, std::uint64_t most);
[[noreturn]] void refuse_type(py::handle object, std::string_view argument);

/// An argument of a type. Of an integer, or of several, as above.
///
/// errors  TypeError; invalid_argument: an integer that is out of the type's range
template <class T>
T argument_of(py::handle object, std::string_view argument) {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, bool> || !std::is_integral_v<T>) {
    try {
      return py::cast<T>(object);
    } catch (const py::cast_error&) {
      refuse_type(object, argument);
    }
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(integer_of(object, argument, Limits::min(), Limits::max()));
  } else {
    return static_cast<T>(natural_of(object, argument, Limits::max()));
  }
}

template <class T>
std::vector<T> integers_of(py::handle iterable, std::string_view argument) {
  std::vector<T> all;
  for (const py::handle element : py::iter(iterable))
    all.push_back(argument_of<T>(element, argument));
  return all;
}

/// One of a dict of options.
template <class T>
T option_of(const py::dict& given, const char* name) {
  return argument_of<T>(given[name], name);
}

// What a call takes besides, and how it is given. `of` makes it of an object of Python's, and
// `taken` gives it to Muster.

/// An integer, which cannot be a float or a Decimal.
template <class T>
struct Whole {
  T value;

  static Whole of(py::handle object) { return {argument_of<T>(object, "an argument")}; }
  operator T() const { return value; }
};

struct OptionalBytes {
  std::optional<Bytes> bytes;

  static OptionalBytes of(py::handle object);
};

struct ManyBytes {
  std::vector<Bytes> all;

  static ManyBytes of(py::handle iterable);
};

/// Keys and values: pairs.
struct Entries {
  std::vector<std::pair<Bytes, Bytes>> all;

  static Entries of(py::handle pairs);
};

/// The timeout of a call; None: that of the store or group.
struct Timeout {
  Duration duration;

  static Timeout of(py::handle object) { return {duration_of(object, default_timeout)}; }
};

/// A time to live, or an age; None: none.
struct OptionalTime {
  std::optional<Duration> duration;

  static OptionalTime of(py::handle object) { return {optional_duration_of(object)}; }
};

struct WriteChoice {
  WriteOptions options;

  static WriteChoice of(py::handle ttl);
};

/// A tuple: ttl, only_if_absent, bind_to_session.
struct SetChoice {
  SetOptions options;

  static SetChoice of(py::handle tuple);
};

/// A tuple: new_size, everyone, min_size.
struct RegroupChoice {
  RegroupOptions options;

  static RegroupChoice of(py::handle tuple);
};

struct RankChoice {
  Rank rank{0};

  static RankChoice of(py::handle number);
};

struct TagChoice {
  Tag tag;

  static TagChoice of(py::handle number);
};

template <class T>
T taken(const Whole<T>& whole) {
  return whole.value;
}
inline std::string_view taken(const Bytes& bytes) { return bytes; }
std::optional<std::string_view> taken(const OptionalBytes& bytes);
std::vector<std::string_view> taken(const ManyBytes& bytes);
std::vector<std::pair<std::string_view, std::string_view>> taken(const Entries& entries);
inline Duration taken(const Timeout& timeout) { return timeout.duration; }
inline std::optional<Duration> taken(const OptionalTime& time) { return time.duration; }
inline const WriteOptions& taken(const WriteChoice& choice) { return choice.options; }
inline const SetOptions& taken(const SetChoice& choice) { return choice.options; }
inline const RegroupOptions& taken(const RegroupChoice& choice) { return choice.options; }
inline Rank taken(const RankChoice& choice) { return choice.rank; }
inline Tag taken(const TagChoice& choice) { return choice.tag; }

}  // namespace muster::python

namespace pybind11::detail {

/// What has an `of`: that says what it takes, in an exception.
template <class Taken>
struct type_caster<Taken, std::enable_if_t<std::is_same_v<
                              decltype(Taken::of(std::declval<pybind11::handle>())), Taken>>> {
  static constexpr auto name = const_name("object");
  bool load(handle source, bool) {
    value_.emplace(Taken::of(source));
    return true;
  }
  template <class>
  using cast_op_type = Taken&&;
  operator Taken&&() { return *std::move(value_); }

 private:
  std::optional<Taken> value_;
};

}  // namespace pybind11::detail
