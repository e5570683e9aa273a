#pragma once

#include <string_view>

namespace muster::wire {

/// What else seems to speak, judged by the first bytes of a connection, such as "HTTP"; empty when
/// it cannot be told.
std::string_view foreign_protocol(std::string_view first_bytes);

}  // namespace muster::wire
