#pragma once

#include <string_view>

namespace muster::wire {

/// What else seems to speak, judged by the first bytes of a connection, such as "HTTP"; empty when
/// it cannot be told.
std::string_view foreign_protocol(std::string_view first_bytes);

/// What `foreign_protocol` calls clients of PyTorch's TCPStore.
inline constexpr std::string_view tcpstore_name = "PyTorch's TCPStore";

/// Whether these bytes, the first ones of a connection, are too few to tell whether a client of
/// TCPStore speaks: those before PyTorch 2.2 send a request in pieces, the first of one byte.
bool may_become_tcpstore(std::string_view first_bytes);

}  // namespace muster::wire
