#include "server/peer/outbox.h"

#include <algorithm>
#include <string>
#include <utility>

namespace muster::server {
namespace {

/// Of long replies: what leaves in one turn, and what a short frame of the same peer waits for.
constexpr std::uint64_t ahead_bytes = 256 * 1024;

}  // namespace

void Outbox::send_in_parts(wire::FrameHeader header, net::SharedBytes head, net::SharedBytes tail) {
  long_.push_back({header, std::move(head), std::move(tail)});
  long_bytes_ += long_.back().bytes();
  long_for_one_bytes_ += long_.back().for_one_bytes();
}

void Outbox::flush() {
  while (wants_part()) send_part();
  connection_.flush();
}

bool Outbox::wants_part() const {
  return !long_.empty() && connection_.is_open() && connection_.unsent_bytes() < ahead_bytes;
}

void Outbox::send_part() {
  LongReply& reply = long_.front();
  const bool is_last = reply.bytes() <= part_bytes_max;
  std::uint64_t count = std::min(reply.bytes(), part_bytes_max);
  wire::FrameHeader header = reply.header;
  if (!is_last) {
    header.type = wire::FrameType::part;
    header.code = 0;
  }
  header.body_bytes = static_cast<std::uint32_t>(count);
  send(header, {});
  long_bytes_ -= count;
  send_some(reply.head, count);
  send_some(reply.tail, count);
  if (is_last) long_.erase(long_.begin());
}

/// Passes on up to `count` bytes, and counts them.
void Outbox::send_some(net::SharedBytes& from, std::uint64_t& count) {
  const std::uint64_t size = std::min<std::uint64_t>(count, from.view.size());
  if (size > 0) {
    connection_.send(net::SharedBytes{from.view.substr(0, size), from.keep_alive, from.is_for_one});
  }
  if (from.is_for_one) long_for_one_bytes_ -= size;
  from.view.remove_prefix(size);
  count -= size;
}

std::uint64_t Outbox::waiting_bytes() const {
  const std::uint64_t sending_bytes = long_.empty() ? 0 : long_.front().bytes();
  return unsent_bytes() - sending_bytes;
}

}  // namespace muster::server
