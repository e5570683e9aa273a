#pragma once

#include <cstdint>

namespace muster::client::protocol {

/// What is known about the request of a call that is over.
enum class Fate : std::uint8_t {
  answered,  ///< the server answered, with a value or an error
  unsent,    ///< it never left: surely nothing happened
  in_doubt,  ///< it left, and its answer did not come: it may or may not have happened
};

}  // namespace muster::client::protocol
