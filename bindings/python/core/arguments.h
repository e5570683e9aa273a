#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
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

  /// errors  TypeError: also of a number of NumPy's, whose buffer is that of the machine;
  ///         ValueError: a str that UTF-8 does not have; BufferError: it has gaps
  static Bytes of(py::handle object, std::string_view argument);

  operator std::string_view() const { return view_; }

 private:
  void release() noexcept;

  std::string_view view_;
  py::object text_;
  Py_buffer buffer_{};
};

// Each of these raises an exception that names the argument.

/// A TypeError: "rank: an int, not str".
[[noreturn]] void refuse_type(py::handle object, std::string_view argument,
                              std::string_view expected);
/// The same where an object of a class of muster._core belongs.
[[noreturn]] void refuse_class(py::handle object, std::string_view argument, py::handle expected);

/// The buffer of an object. What the object raises gets the argument's name, such as the ValueError
/// of a memoryview that was released.
///
/// flags  PyBUF_...
void get_buffer(py::handle object, std::string_view argument, Py_buffer& buffer, int flags);

/// Seconds as a number, or a timedelta; None is `otherwise`.
///
/// errors  ValueError (negative, NaN), TypeError
Duration duration_of(py::handle object, std::string_view argument, Duration otherwise);
std::optional<Duration> optional_duration_of(py::handle object, std::string_view argument);

/// An integer of an argument: an int, or what has __index__. Not a float or a Decimal, whose
/// fraction would be lost.
///
/// errors  TypeError; invalid_argument: it is out of the range
std::int64_t integer_of(py::handle object, std::string_view argument, std::int64_t least,
                        std::int64_t most);
std::uint64_t natural_of(py::handle object, std::string_view argument, std::uint64_t most);

/// A bool of Python's or NumPy's.
bool bool_of(py::handle object, std::string_view argument);
/// A float, or another number that is one.
double double_of(py::handle object, std::string_view argument);
/// A str.
///
/// errors  TypeError; ValueError: UTF-8 does not have it
std::string string_of(py::handle object, std::string_view argument);
/// Several of them, such as a list.
std::vector<std::string> strings_of(py::handle iterable, std::string_view argument);
/// A dict, or a dict of another mapping.
py::dict dict_of(py::handle mapping, std::string_view argument);
/// An iterable's iterator. A str or bytes is one value here, not several.
py::iterator iterator_of(py::handle iterable, std::string_view argument, std::string_view expected);

template <class T, class = void>
struct HasOf : std::false_type {};
template <class T>
struct HasOf<T, std::void_t<decltype(T::of(py::handle(), std::string_view()))>> : std::true_type {};

template <class T>
struct IsShared : std::false_type {};
template <class T>
struct IsShared<std::shared_ptr<T>> : std::true_type {};

template <class T>
constexpr bool is_value = HasOf<T>::value || std::is_arithmetic_v<T> || IsShared<T>::value ||
                          std::is_same_v<T, std::string> || std::is_base_of_v<py::handle, T>;

/// What an argument of the type T is made: an object of a class of muster._core stays where it is.
template <class T>
using Argument = std::conditional_t<is_value<T>, T, T&>;

/// An argument of a type, whatever that is.
///
/// errors  TypeError, ValueError, invalid_argument: as above
template <class T>
Argument<T> argument_of(py::handle object, std::string_view argument) {
  using Limits = std::numeric_limits<T>;
  if constexpr (HasOf<T>::value) {
    return T::of(object, argument);
  } else if constexpr (std::is_same_v<T, bool>) {
    return bool_of(object, argument);
  } else if constexpr (std::is_floating_point_v<T>) {
    return double_of(object, argument);
  } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    return static_cast<T>(integer_of(object, argument, Limits::min(), Limits::max()));
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(natural_of(object, argument, Limits::max()));
  } else if constexpr (std::is_same_v<T, std::string>) {
    return string_of(object, argument);
  } else if constexpr (std::is_same_v<T, py::dict>) {
    return dict_of(object, argument);
  } else if constexpr (std::is_same_v<T, py::handle>) {
    return object;
  } else if constexpr (std::is_base_of_v<py::handle, T>) {
    if (!py::isinstance<T>(object)) refuse_type(object, argument, "another type");
    return py::reinterpret_borrow<T>(object);
  } else if constexpr (IsShared<T>::value) {
    using Element = typename T::element_type;
    if (!py::isinstance<Element>(object)) refuse_class(object, argument, py::type::of<Element>());
    return py::cast<T>(object);
  } else {
    if (!py::isinstance<T>(object)) refuse_class(object, argument, py::type::of<T>());
    return py::cast<T&>(object);
  }
}

template <class T>
std::vector<T> integers_of(py::handle iterable, std::string_view argument) {
  std::vector<T> all;
  for (const py::handle element : iterator_of(iterable, argument, "several ints, such as a list"))
    all.push_back(argument_of<T>(element, argument));
  return all;
}

/// One of a dict of options.
template <class T>
T option_of(const py::dict& given, const char* name) {
  return argument_of<T>(given[name], name);
}
inline Duration duration_option_of(const py::dict& given, const char* name, Duration otherwise) {
  return duration_of(given[name], name, otherwise);
}

// How a function of C++ gets its arguments from Python. pybind11 would raise a TypeError that names
// no argument and shows types of C++; so it is given functions that take any objects.

template <class>
struct AnyObject {
  using type = py::handle;
};

/// Calls the function with arguments of its own types, which are made from the first to the last.
template <class... Given, class Function, std::size_t... Index>
decltype(auto) call_with(const Function& function,
                         const std::array<const char*, sizeof...(Given)>& names,
                         std::index_sequence<Index...>, typename AnyObject<Given>::type... given) {
  std::tuple<Argument<std::decay_t<Given>>...> arguments{
      argument_of<std::decay_t<Given>>(given, names[Index])...};
  return std::apply(function, std::move(arguments));
}

/// A function whose arguments have these names.
template <class R, class... Given, class... Names>
auto named(R (*function)(Given...), Names... names) {
  const std::array<const char*, sizeof...(Given)> all{names...};
  return [function, all](typename AnyObject<Given>::type... given) -> R {
    return call_with<Given...>(function, all, std::index_sequence_for<Given...>(), given...);
  };
}

/// The same of a method: its first argument, which has no name, is the object.
template <class R, class Self, class... Given, class... Names>
auto named_method(R (*function)(Self, Given...), Names... names) {
  const std::array<const char*, sizeof...(Given)> all{names...};
  return [function, all](Self self, typename AnyObject<Given>::type... given) -> R {
    const auto call = [&](auto&&... arguments) -> R {
      return function(self, std::forward<decltype(arguments)>(arguments)...);
    };
    return call_with<Given...>(call, all, std::index_sequence_for<Given...>(), given...);
  };
}

// What a call takes besides, and how it is given. `of` makes it of an object of Python's, and
// `taken` gives it to Muster.

/// A str, as bytes.
struct Text {
  std::string text;

  static Text of(py::handle object, std::string_view argument) {
    return {string_of(object, argument)};
  }
};

/// An integer, which cannot be a float or a Decimal.
template <class T>
struct Whole {
  T value;

  static Whole of(py::handle object, std::string_view argument) {
    return {argument_of<T>(object, argument)};
  }
  operator T() const { return value; }
};

struct OptionalBytes {
  std::optional<Bytes> bytes;

  static OptionalBytes of(py::handle object, std::string_view argument);
};

struct ManyBytes {
  std::vector<Bytes> all;

  static ManyBytes of(py::handle iterable, std::string_view argument);
};

/// Keys and values: pairs.
struct Entries {
  std::vector<std::pair<Bytes, Bytes>> all;

  static Entries of(py::handle pairs, std::string_view argument);
};

/// The timeout of a call; None: that of the store or group.
struct Timeout {
  Duration duration;

  static Timeout of(py::handle object, std::string_view argument) {
    return {duration_of(object, argument, default_timeout)};
  }
};

/// An age; None: none.
struct OptionalTime {
  std::optional<Duration> duration;

  static OptionalTime of(py::handle object, std::string_view argument) {
    return {optional_duration_of(object, argument)};
  }
};

/// A time to live; None, or one without an end: none.
struct TimeToLive {
  std::optional<Duration> duration;

  static TimeToLive of(py::handle object, std::string_view argument);
};

struct WriteChoice {
  WriteOptions options;

  static WriteChoice of(py::handle ttl, std::string_view argument);
};

/// A tuple: ttl, only_if_absent, bind_to_session.
struct SetChoice {
  SetOptions options;

  static SetChoice of(py::handle tuple, std::string_view argument);
};

/// A tuple: new_size, everyone, min_size.
struct RegroupChoice {
  RegroupOptions options;

  static RegroupChoice of(py::handle tuple, std::string_view argument);
};

struct RankChoice {
  Rank rank{0};

  static RankChoice of(py::handle number, std::string_view argument) {
    return {Rank(argument_of<int>(number, argument))};
  }
};

struct TagChoice {
  Tag tag;

  static TagChoice of(py::handle number, std::string_view argument) {
    return {Tag(argument_of<std::uint64_t>(number, argument))};
  }
};

template <class T>
T taken(const Whole<T>& whole) {
  return whole.value;
}
inline std::string_view taken(const Bytes& bytes) { return bytes; }
inline std::string_view taken(const Text& text) { return text.text; }
std::optional<std::string_view> taken(const OptionalBytes& bytes);
std::vector<std::string_view> taken(const ManyBytes& bytes);
std::vector<std::pair<std::string_view, std::string_view>> taken(const Entries& entries);
inline Duration taken(const Timeout& timeout) { return timeout.duration; }
inline std::optional<Duration> taken(const OptionalTime& time) { return time.duration; }
inline std::optional<Duration> taken(const TimeToLive& time) { return time.duration; }
inline const WriteOptions& taken(const WriteChoice& choice) { return choice.options; }
inline const SetOptions& taken(const SetChoice& choice) { return choice.options; }
inline const RegroupOptions& taken(const RegroupChoice& choice) { return choice.options; }
inline Rank taken(const RankChoice& choice) { return choice.rank; }
inline Tag taken(const TagChoice& choice) { return choice.tag; }

}  // namespace muster::python
