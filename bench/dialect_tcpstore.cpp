#include "dialect_tcpstore.h"

#include <cstring>
#include <memory>
#include <stdexcept>

namespace muster::bench {
namespace {

constexpr std::uint32_t validate_number = 0x3C85F7CE;

void append_bytes(std::string& out, std::string_view bytes) {
  append_number(out, static_cast<std::uint64_t>(bytes.size()));
  out += bytes;
}

}  // namespace

/// Newer clients count VALIDATE as 0, and know no WATCH_KEY.
void TcpStoreDialect::append_query(std::string& out, Query query) const {
  const auto number = static_cast<std::uint8_t>(query);
  const bool moved = version_ == Version::newest && query < Query::watch_key;
  append_number(out, static_cast<std::uint8_t>(moved ? number + 1 : number));
}

void TcpStoreDialect::append_keys(std::string& out, Query query, std::string_view key) const {
  append_query(out, query);
  append_number(out, std::uint64_t{1});
  append_bytes(out, key);
}

std::string TcpStoreDialect::greeting() const {
  std::string out;
  if (version_ == Version::first) return out;
  append_number(out, std::uint8_t{0});
  append_number(out, validate_number);
  return out;
}

bool TcpStoreDialect::append_multi_set(std::string& out, int count, std::string_view value) {
  if (version_ == Version::first) return false;
  append_number(out, std::uint8_t{11});
  append_number(out, static_cast<std::uint64_t>(count));
  for (int i = 0; i < count; ++i) {
    append_bytes(out, nth_key(i));
    append_bytes(out, value);
  }
  append_count(out);  // a MULTI_SET has no reply
  return true;
}

void TcpStoreDialect::append_bare_set(std::string& out, std::string_view key,
                                      std::string_view value) const {
  append_query(out, Query::set);
  append_bytes(out, key);
  append_bytes(out, value);
}

bool TcpStoreDialect::append_set(std::string& out, std::string_view key, std::string_view value,
                                 std::int64_t) {
  append_bare_set(out, key, value);
  append_keys(out, Query::check, key);
  expected_.push_back(Reply::byte);
  return true;
}

bool TcpStoreDialect::append_get(std::string& out, std::string_view key, std::size_t) {
  append_query(out, Query::get);
  append_bytes(out, key);
  expected_.push_back(Reply::value);
  return true;
}

bool TcpStoreDialect::append_add(std::string& out, std::string_view key) {
  append_query(out, Query::add);
  append_bytes(out, key);
  append_number(out, std::int64_t{1});
  expected_.push_back(Reply::number);
  return true;
}

bool TcpStoreDialect::append_multi_get(std::string& out, int count, std::size_t value_bytes) {
  for (int i = 0; i < count; ++i) {
    append_get(out, nth_key(i), value_bytes);
    if (i + 1 < count) expected_.back() = Reply::value_of_many;
  }
  return true;
}

bool TcpStoreDialect::append_wait(std::string& out, std::string_view key, std::size_t) {
  append_keys(out, Query::wait, key);
  expected_.push_back(Reply::byte);
  return true;
}

bool TcpStoreDialect::append_wake(std::string& out, std::string_view key, std::string_view value) {
  return append_set(out, key, value, 0);
}

bool TcpStoreDialect::append_count(std::string& out) {
  append_query(out, Query::count_keys);
  expected_.push_back(Reply::number);
  return true;
}

bool TcpStoreDialect::append_remove(std::string& out, std::string_view key) {
  append_query(out, Query::remove);
  append_bytes(out, key);
  expected_.push_back(Reply::number);
  return true;
}

Dialect::Piece TcpStoreDialect::piece_of(std::string_view begin) {
  if (expected_.empty()) throw std::runtime_error("tcpstore answers what nobody asked");
  const Reply reply = expected_.front();
  Piece piece;
  piece.ends_reply = reply != Reply::value_of_many;
  if (reply == Reply::byte) {
    piece.bytes = 1;
  } else {
    if (begin.size() < sizeof(std::uint64_t)) return {};
    std::uint64_t number = 0;
    std::memcpy(&number, begin.data(), sizeof(number));
    piece.bytes = sizeof(number);
    if (reply == Reply::number) {
      set_number(static_cast<std::int64_t>(number));
    } else {
      piece.bytes += number;
    }
  }
  expected_.pop_front();
  return piece;
}

std::unique_ptr<Dialect> make_tcpstore_dialect() {
  return std::make_unique<TcpStoreDialect>(TcpStoreDialect::Version::first);
}

std::unique_ptr<Dialect> make_newest_tcpstore_dialect() {
  return std::make_unique<TcpStoreDialect>(TcpStoreDialect::Version::newest);
}

}  // namespace muster::bench
