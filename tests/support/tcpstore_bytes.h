#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// What the newest clients of TCPStore say, and what they are answered, as it stands on the wire.

namespace muster::test::tcpstore {

inline std::string number(std::uint64_t value, int width_bytes = 8) {
  std::string bytes;
  for (int index = 0; index < width_bytes; ++index) {
    bytes += static_cast<char>(value >> (8 * index) & 0xffU);
  }
  return bytes;
}
/// With its length before it.
inline std::string text(std::string_view bytes) {
  return number(bytes.size()) + std::string(bytes);
}
inline std::string command(unsigned char code) { return {static_cast<char>(code)}; }

using Keys = std::vector<std::string>;
using Entries = std::vector<std::pair<std::string, std::string>>;

inline std::string listed(const Keys& keys) {
  std::string bytes = number(keys.size());
  for (const std::string& key : keys) bytes += text(key);
  return bytes;
}

inline const std::string validate{"\x00\xCE\xF7\x85\x3C", 5};
inline std::string set(std::string_view key, std::string_view value) {
  return command(1) + text(key) + text(value);
}
inline std::string compare_set(std::string_view key, std::string_view expected,
                               std::string_view desired) {
  return command(2) + text(key) + text(expected) + text(desired);
}
inline std::string get(std::string_view key) { return command(3) + text(key); }
inline std::string add(std::string_view key, std::int64_t delta) {
  return command(4) + text(key) + number(static_cast<std::uint64_t>(delta));
}
inline std::string check(const Keys& keys) { return command(5) + listed(keys); }
inline std::string wait(const Keys& keys) { return command(6) + listed(keys); }
inline const std::string count_keys = command(7);
inline std::string delete_key(std::string_view key) { return command(8) + text(key); }
inline std::string append(std::string_view key, std::string_view value) {
  return command(9) + text(key) + text(value);
}
inline std::string multi_get(const Keys& keys) { return command(10) + listed(keys); }
inline std::string multi_set(const Entries& entries) {
  std::string bytes = command(11) + number(entries.size());
  for (const auto& [key, value] : entries) bytes += text(key) + text(value);
  return bytes;
}
inline const std::string cancel_wait = command(12);
inline std::string ping(std::uint32_t nonce) { return command(13) + number(nonce, 4); }
inline std::string push(std::string_view key, std::string_view item) {
  return command(14) + text(key) + text(item);
}
inline std::string pop(std::string_view key) { return command(15) + text(key); }
inline std::string queue_length(std::string_view key) { return command(16) + text(key); }
inline const std::string list_keys = command(17);
inline std::string barrier(std::string_view key, std::int64_t world_size) {
  return command(18) + text(key) + number(static_cast<std::uint64_t>(world_size));
}

inline const std::string stop_waiting{"\0", 1};
inline const std::string wait_cancelled{"\1", 1};
inline const std::string ready{"\0", 1};
inline const std::string not_ready{"\1", 1};

}  // namespace muster::test::tcpstore
