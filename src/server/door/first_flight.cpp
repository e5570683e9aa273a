#include "server/door/first_flight.h"

#include <algorithm>

namespace muster::server {
namespace {

constexpr std::size_t record_header_bytes = 5;   // type, version, length
constexpr std::size_t message_header_bytes = 4;  // type, length
constexpr char handshake_record = 22;
constexpr char major_version = 3;
constexpr char client_hello = 1;

std::size_t byte_at(std::string_view bytes, std::size_t index) {
  return static_cast<unsigned char>(bytes[index]);
}

}  // namespace

bool begins_as_tls(std::string_view bytes) {
  return !bytes.empty() && bytes[0] == handshake_record;
}

/// The message may be in several records, each of which has something of it.
FirstFlight judge_first_flight(std::string_view bytes) {
  char message[message_header_bytes] = {};
  std::size_t message_bytes = 0;  // that have come
  std::size_t wanted_bytes = message_header_bytes;
  std::size_t whole_bytes = 0;  // of the records so far
  while (!bytes.empty()) {
    if (bytes[0] != handshake_record) return FirstFlight::wrong;
    if (bytes.size() > 1 && bytes[1] != major_version) return FirstFlight::wrong;
    if (bytes.size() < record_header_bytes) return FirstFlight::incomplete;
    const std::size_t length = byte_at(bytes, 3) << 8U | byte_at(bytes, 4);
    whole_bytes += record_header_bytes + length;
    if (length == 0 || whole_bytes > first_flight_bytes_max) return FirstFlight::wrong;
    bytes.remove_prefix(record_header_bytes);
    const std::string_view part = bytes.substr(0, length);
    for (std::size_t index = 0; index < part.size(); ++index) {
      if (message_bytes + index >= message_header_bytes) break;
      message[message_bytes + index] = part[index];
    }
    message_bytes += part.size();
    if (message_bytes > 0 && message[0] != client_hello) return FirstFlight::wrong;
    if (message_bytes >= message_header_bytes) {
      const std::string_view header(message, message_header_bytes);
      wanted_bytes = message_header_bytes + (byte_at(header, 1) << 16U) +
                     (byte_at(header, 2) << 8U) + byte_at(header, 3);
      if (wanted_bytes > first_flight_bytes_max) return FirstFlight::wrong;
      if (message_bytes >= wanted_bytes) return FirstFlight::complete;
    }
    bytes.remove_prefix(part.size());
  }
  return FirstFlight::incomplete;
}

}  // namespace muster::server
