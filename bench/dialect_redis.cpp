#include <charconv>
#include <stdexcept>
#include <utility>

#include "dialect.h"

namespace muster::bench {
namespace {

/// RESP. Who waits is subscribed to a channel, which is the quickest way that redis has to wake
/// many.
class RedisDialect : public Dialect {
 public:
  bool append_set(std::string& out, std::string_view key, std::string_view value,
                  std::int64_t time_to_live_ms) override {
    if (time_to_live_ms > 0) {
      append_command(out, {"SET", key, value, "PX", std::to_string(time_to_live_ms)});
    } else {
      append_command(out, {"SET", key, value});
    }
    return true;
  }
  bool append_get(std::string& out, std::string_view key, std::size_t) override {
    append_command(out, {"GET", key});
    return true;
  }
  bool append_add(std::string& out, std::string_view key) override {
    append_command(out, {"INCR", key});
    return true;
  }
  bool append_multi_get(std::string& out, int count, std::size_t) override {
    append_head(out, '*', count + 1);
    append_word(out, "MGET");
    for (int i = 0; i < count; ++i) append_word(out, nth_key(i));
    return true;
  }
  bool append_wait(std::string& out, std::string_view, std::size_t) override {
    if (!is_subscribed_) append_command(out, {"SUBSCRIBE", "wake"});
    is_subscribed_ = true;
    return true;
  }
  bool append_wake(std::string& out, std::string_view, std::string_view value) override {
    append_command(out, {"PUBLISH", "wake", value});
    return true;
  }
  bool append_count(std::string& out) override {
    append_command(out, {"DBSIZE"});
    return true;
  }

 protected:
  Piece piece_of(std::string_view begin) override {
    const std::size_t end = begin.find(line_end);
    if (end == std::string_view::npos) return {};
    std::int64_t number = 0;
    std::from_chars(begin.data() + 1, begin.data() + end, number);
    const std::size_t head_bytes = end + line_end.size();
    switch (begin[0]) {
      case '-': throw std::runtime_error("redis: " + std::string(begin.substr(1, end - 1)));
      case '*':
        items_left_ = number;
        is_first_item_ = true;
        return {head_bytes, items_left_ == 0};
      case '$': {
        const bool is_answer_to_subscribe =
            is_first_item_ && items_left_ == 3 && number == subscribe_bytes;
        if (is_answer_to_subscribe) confirms_ = true;
        is_first_item_ = false;
        const auto bytes = number < 0 ? 0 : static_cast<std::size_t>(number) + line_end.size();
        return {head_bytes + bytes, ends_item()};
      }
      case ':': set_number(number); return {head_bytes, ends_item()};
      default: return {head_bytes, ends_item()};
    }
  }

 private:
  static constexpr std::int64_t subscribe_bytes = 9;  // "subscribe"; a message's is "message"

  /// Whether the reply ends with this item. That to a subscription is none.
  bool ends_item() {
    if (items_left_ > 0 && --items_left_ > 0) return false;
    return !std::exchange(confirms_, false);
  }

  static void append_head(std::string& out, char type, std::int64_t number) {
    out += type;
    out += std::to_string(number);
    out += line_end;
  }
  static void append_word(std::string& out, std::string_view word) {
    append_head(out, '$', static_cast<std::int64_t>(word.size()));
    out += word;
    out += line_end;
  }
  static void append_command(std::string& out, std::initializer_list<std::string_view> words) {
    append_head(out, '*', static_cast<std::int64_t>(words.size()));
    for (const std::string_view word : words) append_word(out, word);
  }

  std::int64_t items_left_ = 0;
  bool is_first_item_ = false;
  bool is_subscribed_ = false;
  bool confirms_ = false;
};

}  // namespace

std::unique_ptr<Dialect> make_redis_dialect() { return std::make_unique<RedisDialect>(); }

}  // namespace muster::bench
