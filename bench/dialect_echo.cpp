#include <cstring>

#include "dialect.h"
#include "echo_protocol.h"

// To the echo server an operation is as many bytes as it has to move: a key of 16, a value, a
// number of 8. So each operation is compared with a floor of its own.

namespace muster::bench {
namespace {

constexpr std::size_t key_bytes = 16;
constexpr std::size_t number_bytes = 8;

class EchoDialect : public Dialect {
 public:
  // As long as Muster's, so that a storm of connections moves the same bytes.
  std::string greeting() const override {
    std::string out;
    append_order(out, 512 - sizeof(EchoHead), 256 - sizeof(EchoHead), EchoOrder::answer);
    return out;
  }
  std::size_t greeting_reply_bytes() const override { return 256; }

  bool append_set(std::string& out, std::string_view key, std::string_view value,
                  std::int64_t) override {
    return append_order(out, key.size() + value.size(), number_bytes, EchoOrder::answer);
  }
  bool append_get(std::string& out, std::string_view key, std::size_t value_bytes) override {
    return append_order(out, key.size(), value_bytes, EchoOrder::answer);
  }
  bool append_add(std::string& out, std::string_view key) override {
    return append_order(out, key.size() + number_bytes, number_bytes, EchoOrder::answer);
  }
  bool append_multi_get(std::string& out, int count, std::size_t value_bytes) override {
    const auto keys = static_cast<std::size_t>(count);
    return append_order(out, keys * key_bytes, keys * value_bytes, EchoOrder::answer);
  }
  bool append_wait(std::string& out, std::string_view key, std::size_t value_bytes) override {
    return append_order(out, key.size(), value_bytes, EchoOrder::park);
  }
  bool append_wake(std::string& out, std::string_view key, std::string_view value) override {
    return append_order(out, key.size() + value.size(), number_bytes, EchoOrder::release);
  }

 protected:
  Piece piece_of(std::string_view begin) override {
    if (begin.size() < sizeof(EchoHead)) return {};
    EchoHead head;
    std::memcpy(&head, begin.data(), sizeof(head));
    return {sizeof(head) + head.body_bytes};
  }

 private:
  static bool append_order(std::string& out, std::size_t body_bytes, std::size_t reply_bytes,
                           EchoOrder order) {
    append_number(out, EchoHead{static_cast<std::uint32_t>(body_bytes),
                                static_cast<std::uint32_t>(reply_bytes), order});
    out.append(body_bytes, 'x');
    return true;
  }
};

}  // namespace

std::unique_ptr<Dialect> make_echo_dialect() { return std::make_unique<EchoDialect>(); }

}  // namespace muster::bench
