#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "dialect.h"

namespace muster::bench {

/// What clients of TCPStore send: a byte for the query, lengths of 8 bytes.
///
/// A set has no reply. So that it can be seen when it is done, a check of the key follows it in the
/// same write; torch itself sends nothing.
class TcpStoreDialect : public Dialect {
 public:
  enum class Version { first, newest };
  explicit TcpStoreDialect(Version version) : version_(version) {}

  std::string greeting() const override;
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
  void append_bare_set(std::string& out, std::string_view key, std::string_view value) const;
  /// `count` keys at once, made by `nth_key`, and a count of all, which is answered.
  bool append_multi_set(std::string& out, int count, std::string_view value);
  bool append_remove(std::string& out, std::string_view key);

 protected:
  Piece piece_of(std::string_view begin) override;

 private:
  enum class Query : std::uint8_t {
    set,
    compare_set,
    get,
    add,
    check,
    wait,
    count_keys,
    watch_key,
    remove,
  };
  void append_query(std::string& out, Query query) const;
  void append_keys(std::string& out, Query query, std::string_view key) const;

  enum class Reply : std::uint8_t { byte, number, value, value_of_many };

  const Version version_;
  std::deque<Reply> expected_;
};

}  // namespace muster::bench
