#include "wire/foreign.h"

#include <array>

namespace muster::wire {
namespace {

using namespace std::string_view_literals;

struct Start {
  std::string_view bytes;
  std::string_view name;
};

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
    Start{"\x00\xce\xf7\x85\x3c"sv, "PyTorch's TCPStore"sv},
};

}  // namespace

std::string_view foreign_protocol(std::string_view first_bytes) {
  for (const Start& start : starts) {
    if (first_bytes.substr(0, start.bytes.size()) == start.bytes) return start.name;
  }
  return {};
}

}  // namespace muster::wire
