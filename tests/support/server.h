#pragma once

#include <type_traits>
#include <utility>

#include <doctest/doctest.h>

#include "muster/server.h"
#include "support/health.h"

namespace muster::test {

/// The value; without one the test fails and the program of this rank cannot go on.
template <class T>
T must(Result<T> result) {
  if (!result.has_value()) FAIL(result.error().message());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// The error of a call that must fail.
template <class T>
Error must_fail(const Result<T>& result) {
  if (result.has_value()) FAIL("the call succeeded");
  return result.error();
}

/// Of which every connection is expected to be a session that goes in order: see `Health`.
inline Server start_server(ServerOptions options = {}) {
  options.logger = Health::logger(std::move(options.logger));
  return must(Server::start(std::move(options)));
}

/// Whose connections break off, come back, or are no clients.
inline Server start_disturbed_server(ServerOptions options = {}) {
  return must(Server::start(std::move(options)));
}

/// As frames carry it.
inline std::uint16_t number_of(ErrorCode code) { return static_cast<std::uint16_t>(code); }

}  // namespace muster::test
