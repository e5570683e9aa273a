#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "dialect.h"

namespace muster::bench {

/// What the TCPStore of torch 1.13 sends: a byte for the query, lengths of 8 bytes.
///
/// A set has no reply. So that it can be seen when it is done, a check of the key follows it in the
/// same write; torch itself sends nothing.
class TcpStoreDialect : public Dialect {
 public:
  bool append_set(std::string& out, std::string_view key, std::string_view value,
                  std::int64_t time_to_live_ms) override;
  bool append_get(std::string& out, std::string_view key, std::size_t value_bytes) override;
  bool append_add(std::string& out, std::string_view key) override;
  /// There is none: so many gets in one write.
  bool append_multi_get(std::string& out, int count, std::size_t value_bytes) override;
  bool append_wait(std::string& out, std::string_view key, std::size_t value_bytes) override;
  bool append_wake(std::string& out, std::string_view key, std::string_view value) override;
  bool append_count(std::string& out) override;

  /// A set as torch sends it: nothing answers.
  static void append_bare_set(std::string& out, std::string_view key, std::string_view value);
  bool append_remove(std::string& out, std::string_view key);

 protected:
  Piece piece_of(std::string_view begin) override;

 private:
  enum class Reply : std::uint8_t { byte, number, value, value_of_many };

  std::deque<Reply> expected_;
};

}  // namespace muster::bench
