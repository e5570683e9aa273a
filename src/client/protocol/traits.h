#pragma once

#include "wire/operation.h"

namespace muster::client::protocol {

/// Whether the server keeps the reply until it is acknowledged or abandoned, so that a repetition
/// is answered the same.
constexpr bool is_kept(wire::Operation operation) {
  using wire::Operation;
  switch (operation) {
    case Operation::get:
    case Operation::exists:
    case Operation::wait:
    case Operation::multi_get:
    case Operation::list:
    case Operation::members:
    case Operation::status:
    case Operation::sessions:
    case Operation::groups:
    case Operation::inspect_group:
    case Operation::waiters: return false;
    default: return true;
  }
}

/// Whether the server may park the request. One that it parks does not count as in flight.
constexpr bool may_wait(wire::Operation operation) {
  using wire::Operation;
  switch (operation) {
    case Operation::get:
    case Operation::take:
    case Operation::wait:
    case Operation::join:
    case Operation::regroup:
    case Operation::collective:
    case Operation::receive:
    case Operation::recover: return true;
    default: return false;
  }
}

}  // namespace muster::client::protocol
