#pragma once

#include <cstdint>

namespace muster::client::protocol {

/// What is known about the request of a call that is over.
enum class Fate : std::uint8_t {
  answered,  ///< the server answered, with a value or an error
  unsent,    ///< it never left: surely nothing happened
  in_doubt,  ///< it left, and its answer did not come: it may or may not have happened
};

/// Who tells the server that the answer of a call was received.
enum class Receipt : std::uint8_t {
  at_once,    ///< the protocol, when it comes
  by_caller,  ///< whoever submitted the call, if it is a value: see `Requests::conclude`
};

/// What became of a value whose receipt is its caller's.
enum class Verdict : std::uint8_t {
  accepted,  ///< received
  refused,   ///< not received: the server keeps an object in it
};

}  // namespace muster::client::protocol
