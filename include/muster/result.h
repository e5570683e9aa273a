#pragma once

#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "muster/config.h"
#include "muster/error.h"

MUSTER_BEGIN_NAMESPACE

/// Thrown by `Result::value()`, and by nothing else in Muster.
class MUSTER_API BadResult : public std::exception {
 public:
  explicit BadResult(Error error);
  BadResult(const BadResult&) = default;
  BadResult& operator=(const BadResult&) = default;
  ~BadResult() override;

  const Error& error() const noexcept { return error_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  Error error_;
  std::string message_;
};

namespace detail {

/// Somebody has used the value of a failure, or the error of a success: says so on standard error,
/// and aborts.
[[noreturn]] MUSTER_API void abort_without_value(const Error& error) noexcept;
[[noreturn]] MUSTER_API void abort_without_error() noexcept;
/// In the library, so that hosts compile without exceptions; there it ends the process.
[[noreturn]] MUSTER_API void throw_bad_result(const Error& error);
/// The text of the exception that is handled right now.
MUSTER_API std::string current_exception_text();

}  // namespace detail

/// Whether a T answers yes or no by itself. `if (result)` asks whether the call has worked; where
/// the value is an answer, too, it would be read as that answer, and be true of every "no". So a
/// Result of a verdict stands in no condition. To be specialized for further types.
template <class T>
inline constexpr bool is_verdict = std::is_same_v<T, bool>;
template <class T>
inline constexpr bool is_verdict<std::optional<T>> = true;

/// A value, or the error why there is none. Names as in C++23's std::expected.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const noexcept { return state_.index() == 0; }
  /// Whether there is a value. Not of a verdict (see `is_verdict`).
  explicit operator bool() const noexcept {
    static_assert(!is_verdict<T>,
                  "a Result of bool, Compared, RecoveredRound or std::optional is no condition: "
                  "write result.has_value() to ask whether the call has worked, and then *result, "
                  "result->applied, result->error or result->has_value() for its answer");
    return has_value();
  }

  /// The value; throws BadResult if there is none.
  T& value() & { return check(), std::get<0>(state_); }
  const T& value() const& { return check(), std::get<0>(state_); }
  T&& value() && { return check(), std::get<0>(std::move(state_)); }

  /// The value. If there is none, prints the error and aborts.
  T& operator*() & { return *there(); }
  const T& operator*() const& { return *there(); }
  T&& operator*() && { return std::move(*there()); }
  T* operator->() { return there(); }
  const T* operator->() const { return there(); }

  template <class U>
  T value_or(U&& fallback) const& {
    return has_value() ? **this : static_cast<T>(std::forward<U>(fallback));
  }

  /// The error. If there is none, aborts.
  Error& error() & { return *missing(); }
  const Error& error() const& { return *missing(); }
  Error&& error() && { return std::move(*missing()); }

 private:
  void check() const {
    if (!has_value()) detail::throw_bad_result(error());
  }

  T* there() {
    if (T* const value = std::get_if<0>(&state_)) return value;
    detail::abort_without_value(*std::get_if<1>(&state_));
  }
  const T* there() const {
    if (const T* const value = std::get_if<0>(&state_)) return value;
    detail::abort_without_value(*std::get_if<1>(&state_));
  }
  Error* missing() {
    if (Error* const error = std::get_if<1>(&state_)) return error;
    detail::abort_without_error();
  }
  const Error* missing() const {
    if (const Error* const error = std::get_if<1>(&state_)) return error;
    detail::abort_without_error();
  }

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool has_value() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }

  /// Throws BadResult if there is an error.
  void value() const {
    if (error_) detail::throw_bad_result(*error_);
  }

  /// The error. If there is none, aborts.
  Error& error() & { return check(), *error_; }
  const Error& error() const& { return check(), *error_; }
  Error&& error() && { return check(), std::move(*error_); }

 private:
  void check() const {
    if (!error_) detail::abort_without_error();
  }

  std::optional<Error> error_;
};

MUSTER_END_NAMESPACE
