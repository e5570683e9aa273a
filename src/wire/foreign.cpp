#include "wire/foreign.h"

#include <array>
#include <cstddef>

namespace muster::wire {
namespace {

using namespace std::string_view_literals;

struct Start {
  std::string_view bytes;
  std::string_view name;
};

/// With which a client of TCPStore begins, since PyTorch 2.2.
constexpr std::string_view validate = "\x00\xce\xf7\x85\x3c"sv;

/// A client of Muster that asks what listens here, since it was not answered: bindings/python.
constexpr std::string_view asks_for_tcpstore = "PyTorch's TCPStore, to ask for a server of it";

constexpr std::array starts = {
    Start{"GET "sv, "HTTP"sv},
    Start{"HEAD "sv, "HTTP"sv},
    Start{"POST "sv, "HTTP"sv},
    Start{"PUT "sv, "HTTP"sv},
    Start{"DELETE "sv, "HTTP"sv},
    Start{"OPTIONS "sv, "HTTP"sv},
    Start{"PATCH "sv, "HTTP"sv},
    Start{"CONNECT "sv, "HTTP"sv},
    Start{"HTTP/"sv, "HTTP"sv},
    Start{"PRI * HTTP/2"sv, "HTTP/2 or gRPC"sv},
    Start{"\x16\x03"sv, "TLS"sv},
    Start{"\x15\x03"sv, "TLS"sv},
    Start{"SSH-"sv, "SSH"sv},
    Start{"220 "sv, "SMTP or FTP"sv},
    Start{"*1\r\n"sv, "Redis"sv},
    Start{"-ERR"sv, "Redis"sv},
    Start{"PROXY "sv, "the PROXY protocol of a load balancer"sv},
    Start{"\r\n\r\n\x00\r\nQUIT\n"sv, "the PROXY protocol of a load balancer"sv},
    Start{"\x00\xce\xf7\x85\x3c\x0dMSTR"sv, asks_for_tcpstore},
    Start{"\x00\xce\xf7\x85\x3c\x07"sv, asks_for_tcpstore},
    Start{validate, tcpstore_name},
};

// How it begins before PyTorch 2.2: SET, COMPARE_SET, GET or ADD, the length of a key, and a key,
// which is of a user or counts who has come ("init/").
constexpr unsigned char command_max = 3;
constexpr std::size_t length_bytes = 8;
constexpr std::size_t short_length_bytes = 2;
constexpr std::string_view key_starts = "/i";
constexpr std::size_t told_bytes = 1 + length_bytes + 1;

/// As far as there are bytes.
bool is_as_old_tcpstore(std::string_view bytes) {
  if (bytes.empty() || static_cast<unsigned char>(bytes[0]) > command_max) return false;
  const std::string_view length = bytes.substr(1, length_bytes);
  const std::size_t set = length.find_last_not_of('\0');
  const bool is_zero = set == std::string_view::npos;
  if (is_zero ? length.size() >= short_length_bytes : set >= short_length_bytes) return false;
  return bytes.size() < told_bytes ||
         key_starts.find(bytes[told_bytes - 1]) != std::string_view::npos;
}

}  // namespace

bool may_become_tcpstore(std::string_view first_bytes) {
  if (first_bytes.empty()) return false;
  const bool may_validate =
      first_bytes.size() < validate.size() && validate.starts_with(first_bytes);
  return may_validate || (first_bytes.size() < told_bytes && is_as_old_tcpstore(first_bytes));
}

std::string_view foreign_protocol(std::string_view first_bytes) {
  for (const Start& start : starts) {
    if (first_bytes.substr(0, start.bytes.size()) == start.bytes) return start.name;
  }
  const bool is_told = first_bytes.size() >= told_bytes;
  return is_told && is_as_old_tcpstore(first_bytes) ? tcpstore_name : std::string_view();
}

}  // namespace muster::wire
