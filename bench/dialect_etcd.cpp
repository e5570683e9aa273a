#include <charconv>
#include <stdexcept>

#include "dialect.h"

namespace muster::bench {
namespace {

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view group = bytes.substr(at, 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (i < group.size() ? static_cast<unsigned char>(group[i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += i <= group.size() ? digits[bits >> (18 - 6 * i) & 63] : '=';
    }
  }
  return text;
}

void append_post(std::string& out, std::string_view path, const std::string& body) {
  out += "POST ";
  out += path;
  out += " HTTP/1.1\r\nHost: bench\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  out += body;
}

/// Its API in JSON, which etcd itself turns into its other one, gRPC.
class EtcdDialect : public Dialect {
 public:
  bool append_set(std::string& out, std::string_view key, std::string_view value,
                  std::int64_t time_to_live_ms) override {
    if (time_to_live_ms > 0) return false;  // a lease, which is made beforehand
    append_post(out, "/v3/kv/put",
                R"({"key":")" + base64(key) + R"(","value":")" + base64(value) + R"("})");
    return true;
  }
  /// Without asking the other servers of its cluster, had it any.
  bool append_get(std::string& out, std::string_view key, std::size_t) override {
    append_post(out, "/v3/kv/range", R"({"key":")" + base64(key) + R"(","serializable":true})");
    return true;
  }
  bool append_add(std::string&, std::string_view) override { return false; }
  bool append_multi_get(std::string&, int, std::size_t) override { return false; }
  bool append_wait(std::string&, std::string_view, std::size_t) override { return false; }
  bool append_wake(std::string&, std::string_view, std::string_view) override { return false; }

 protected:
  Piece piece_of(std::string_view begin) override {
    constexpr std::string_view head_end = "\r\n\r\n";
    constexpr std::string_view length = "\r\nContent-Length: ";
    const std::size_t end = begin.find(head_end);
    if (end == std::string_view::npos) return {};
    const std::string_view head = begin.substr(0, end);
    const std::size_t at = head.find(length);
    std::size_t body_bytes = 0;
    if (!head.starts_with("HTTP/1.1 200 ") || at == std::string_view::npos) {
      throw std::runtime_error("etcd: " + std::string(head.substr(0, head.find(line_end))));
    }
    std::from_chars(head.data() + at + length.size(), head.data() + head.size(), body_bytes);
    return {end + head_end.size() + body_bytes};
  }
};

}  // namespace

std::unique_ptr<Dialect> make_etcd_dialect() { return std::make_unique<EtcdDialect>(); }

}  // namespace muster::bench
