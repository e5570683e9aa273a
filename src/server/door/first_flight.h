#pragma once

#include <cstddef>
#include <string_view>

namespace muster::server {

/// What a client of TLS says first, a ClientHello, has at most so many bytes with its records: it
/// is kept before anybody is known, for each newcomer.
inline constexpr std::size_t first_flight_bytes_max = 448;

enum class FirstFlight {
  incomplete,
  complete,
  wrong,  ///< it never becomes one
};

/// What these bytes are, the first ones of a connection.
FirstFlight judge_first_flight(std::string_view bytes);

/// Whether somebody seems to speak TLS.
bool begins_as_tls(std::string_view bytes);

}  // namespace muster::server
