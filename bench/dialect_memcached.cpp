#include <charconv>
#include <stdexcept>

#include "dialect.h"

namespace muster::bench {
namespace {

/// The meta protocol, which is the quicker one; for many keys at once the older text protocol.
class MemcachedDialect : public Dialect {
 public:
  bool append_set(std::string& out, std::string_view key, std::string_view value,
                  std::int64_t time_to_live_ms) override {
    out += "ms ";
    out += key;
    out += ' ' + std::to_string(value.size());
    if (time_to_live_ms > 0) out += " T" + std::to_string((time_to_live_ms + 999) / 1000);
    out += line_end;
    out += value;
    out += line_end;
    return true;
  }
  bool append_get(std::string& out, std::string_view key, std::size_t) override {
    out += "mg ";
    out += key;
    out += " v\r\n";
    return true;
  }
  bool append_add(std::string& out, std::string_view key) override {
    out += "ma ";
    out += key;
    out += " N0 J1 v\r\n";
    return true;
  }
  bool append_multi_get(std::string& out, int count, std::size_t) override {
    out += "get";
    for (int i = 0; i < count; ++i) out += ' ' + nth_key(i);
    out += line_end;
    return true;
  }
  bool append_wait(std::string&, std::string_view, std::size_t) override { return false; }
  bool append_wake(std::string&, std::string_view, std::string_view) override { return false; }

 protected:
  Piece piece_of(std::string_view begin) override {
    const std::size_t end = begin.find(line_end);
    if (end == std::string_view::npos) return {};
    const std::string_view line = begin.substr(0, end);
    const std::size_t head_bytes = end + line_end.size();
    if (line.starts_with("VA ")) return {head_bytes + value_bytes(line, 1)};
    if (line.starts_with("VALUE ")) return {head_bytes + value_bytes(line, 3), false};
    if (line == "HD" || line == "EN" || line == "END") return {head_bytes};
    throw std::runtime_error("memcached: " + std::string(line));
  }

 private:
  /// What the word of this index says, and the end of the line behind the value.
  static std::size_t value_bytes(std::string_view line, int word) {
    for (; word > 0; --word) line.remove_prefix(line.find(' ') + 1);
    std::size_t bytes = 0;
    std::from_chars(line.data(), line.data() + line.size(), bytes);
    return bytes + line_end.size();
  }
};

}  // namespace

std::unique_ptr<Dialect> make_memcached_dialect() { return std::make_unique<MemcachedDialect>(); }

}  // namespace muster::bench
