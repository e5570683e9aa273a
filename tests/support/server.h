#pragma once

#include <type_traits>
#include <utility>

#include <doctest/doctest.h>

#include "muster/server.h"

namespace muster::test {

/// The value; without one the test fails and the program of this rank cannot go on.
template <class T>
T must(Result<T> result) {
  if (!result) FAIL(result.error().message());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// The error of a call that must fail.
template <class T>
Error must_fail(const Result<T>& result) {
  if (result.has_value()) FAIL("the call succeeded");
  return result.error();
}

inline Server start_server(ServerOptions options = {}) {
  return must(Server::start(std::move(options)));
}

/// As frames carry it.
inline std::uint16_t number_of(ErrorCode code) { return static_cast<std::uint16_t>(code); }

}  // namespace muster::test
