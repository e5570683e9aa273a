#include "dialect.h"

#include <algorithm>
#include <cstdio>

#include "dialect_muster.h"

namespace muster::bench {

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::echo: return "echo";
    case Kind::muster: return "muster";
    case Kind::redis: return "redis";
    case Kind::memcached: return "memcached";
    case Kind::muster_tcpstore: return "muster_tcpstore";
    case Kind::tcpstore: return "tcpstore";
    case Kind::tcpstore_libuv: return "tcpstore_libuv";
    case Kind::etcd: return "etcd";
  }
  return "";
}

std::unique_ptr<Dialect> make_dialect(Kind kind) {
  switch (kind) {
    case Kind::echo: return make_echo_dialect();
    case Kind::muster: return std::make_unique<MusterDialect>();
    case Kind::redis: return make_redis_dialect();
    case Kind::memcached: return make_memcached_dialect();
    case Kind::tcpstore: return make_tcpstore_dialect();
    case Kind::muster_tcpstore:
    case Kind::tcpstore_libuv: return make_newest_tcpstore_dialect();
    case Kind::etcd: return make_etcd_dialect();
  }
  return nullptr;
}

std::string nth_key(std::int64_t number) {
  char text[32];
  const int bytes =
      std::snprintf(text, sizeof(text), "key-%012lld", static_cast<long long>(number));
  return {text, static_cast<std::size_t>(bytes)};
}

std::size_t Dialect::take(std::string_view bytes) {
  std::size_t replies = 0;
  while (!bytes.empty()) {
    if (skip_ > 0) {
      const std::size_t skipped = std::min(skip_, bytes.size());
      skip_ -= skipped;
      bytes.remove_prefix(skipped);
      if (skip_ == 0 && ends_reply_) ++replies;
      continue;
    }
    const bool has_begun = !begun_.empty();
    if (has_begun) begun_ += bytes;
    const std::string_view from = has_begun ? std::string_view(begun_) : bytes;
    const Piece piece = piece_of(from);
    if (piece.bytes == 0 || (piece.is_wanted && from.size() < piece.bytes)) {
      if (!has_begun) begun_ = bytes;
      return replies;
    }
    const std::size_t here = std::min(piece.bytes, from.size());
    if (piece.is_wanted) whole(from.substr(0, here));
    bytes.remove_prefix(here - (from.size() - bytes.size()));
    begun_.clear();
    skip_ = piece.bytes - here;
    ends_reply_ = piece.ends_reply;
    if (skip_ == 0 && ends_reply_) ++replies;
  }
  return replies;
}

}  // namespace muster::bench
