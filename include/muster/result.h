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

/// A value, or the error why there is none. Names as in C++23's std::expected.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  /// The value; throws BadResult if there is none.
  T& value() & { return check(), std::get<0>(state_); }
  const T& value() const& { return check(), std::get<0>(state_); }
  T&& value() && { return check(), std::get<0>(std::move(state_)); }

  /// The value; `has_value()` must be true.
  T& operator*() & { return *std::get_if<0>(&state_); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }

  template <class U>
  T value_or(U&& fallback) const& {
    return has_value() ? **this : static_cast<T>(std::forward<U>(fallback));
  }

  /// The error; `has_value()` must be false.
  Error& error() & { return *std::get_if<1>(&state_); }
  const Error& error() const& { return *std::get_if<1>(&state_); }
  Error&& error() && { return std::move(*std::get_if<1>(&state_)); }

 private:
  void check() const {
    if (!has_value()) throw BadResult(error());
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
    if (error_) throw BadResult(*error_);
  }

  Error& error() & { return *error_; }
  const Error& error() const& { return *error_; }
  Error&& error() && { return std::move(*error_); }

 private:
  std::optional<Error> error_;
};

MUSTER_END_NAMESPACE
