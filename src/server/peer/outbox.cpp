#include "server/peer/outbox.h"

#include <algorithm>
#include <string>
#include <utility>

namespace muster::server {
namespace {

/// Of long replies: what a short frame of the same peer waits for.
constexpr std::uint64_t ahead_bytes = 256 * 1024;
/// The most parts of one that leave in one write.
constexpr std::size_t offered_parts_max = 17;
/// Short bare bytes behind long ones are gathered in pieces, each larger than the one before: most
/// often a few bytes are between two long replies.
constexpr std::size_t bare_bytes_min = 64;
constexpr std::size_t bare_bytes_max = 4096;
/// The memory of a piece without its bytes: its string and the reference counts.
constexpr std::size_t bare_overhead_bytes = 64;

}  // namespace

void Outbox::send_in_parts(wire::FrameHeader header, net::SharedBytes head, net::SharedBytes tail) {
  long_.push_back({header, std::move(head), std::move(tail), 0});
  long_bytes_ += long_.back().bytes();
  long_for_one_bytes_ += long_.back().for_one_bytes();
}

void Outbox::send_bare(std::string_view bytes) {
  if (bytes.empty()) return;
  if (!has_long()) return connection_.send(bytes);
  const bool is_last = bare_ != nullptr && long_.back().head.keep_alive == bare_;
  if (!is_last || bare_->size() + bytes.size() > bare_->capacity()) {
    const std::size_t larger = is_last ? 2 * bare_->capacity() : bare_bytes_min;
    bare_ = std::make_shared<std::string>();
    bare_->reserve(std::max(bytes.size(), std::min(larger, bare_bytes_max)));
    const std::uint64_t allocated_bytes = bare_->capacity() + bare_overhead_bytes;
    long_.push_back({std::nullopt, {{bare_->data(), 0}, bare_, true}, {}, allocated_bytes});
    bare_bytes_ += allocated_bytes;
  }
  bare_->append(bytes);  // what is there stays where it is
  std::string_view& last = long_.back().head.view;
  last = {last.data(), last.size() + bytes.size()};
  long_bytes_ += bytes.size();
  long_for_one_bytes_ += bytes.size();
}

void Outbox::send_bare(net::SharedBytes bytes) {
  if (bytes.view.empty()) return;
  if (!has_long() && bytes.view.size() <= part_bytes_max) return connection_.send(std::move(bytes));
  long_bytes_ += bytes.view.size();
  if (bytes.is_for_one) long_for_one_bytes_ += bytes.view.size();
  long_.push_back({std::nullopt, std::move(bytes), {}, 0});
}

void Outbox::flush(std::uint64_t long_bytes) {
  connection_.flush();
  if (long_bytes == 0 || !has_long()) return;
  if (connection_.unsent_bytes() == 0 && offer_parts(long_bytes)) return;
  while (wants_part()) send_part(0);
  connection_.flush();
}

bool Outbox::wants_part() const {
  return has_long() && connection_.is_open() && connection_.unsent_bytes() < ahead_bytes;
}

/// The next part of the first long reply after `offset` bytes of it.
Outbox::Part Outbox::part_at(std::uint64_t offset) const {
  const LongReply& reply = long_.front();
  const std::uint64_t rest = reply.bytes() - offset;
  const bool is_last = rest <= part_bytes_max;
  const std::uint64_t count = std::min(rest, part_bytes_max);
  if (!reply.header) return {{}, 0, count, is_last};
  wire::FrameHeader header = *reply.header;
  if (!is_last) {
    header.type = wire::FrameType::part;
    header.code = 0;
  }
  header.body_bytes = static_cast<std::uint32_t>(count);
  return {wire::encode_frame_header(header), wire::frame_header_bytes, count, is_last};
}

/// Offers the socket so many bytes of the first long reply, in whole parts. Of a part that it has
/// taken only in part the rest is queued; what it has not begun with still waits here, so that
/// a short frame does not wait behind it.
///
/// returns  whether the socket has taken all of them
bool Outbox::offer_parts(std::uint64_t bytes) {
  const LongReply& reply = long_.front();
  std::array<Part, offered_parts_max> parts;
  std::array<std::string_view, 3 * offered_parts_max> pieces;
  std::size_t pieces_count = 0;
  const auto add = [&](std::string_view piece) {
    if (!piece.empty()) pieces[pieces_count++] = piece;
  };
  std::uint64_t offset = 0;
  std::uint64_t offered_bytes = 0;
  for (Part& part : parts) {
    part = part_at(offset);
    const std::uint64_t of_head = std::min<std::uint64_t>(offset, reply.head.view.size());
    const std::string_view head = reply.head.view.substr(of_head, part.body_bytes);
    add(part.header());
    add(head);
    add(reply.tail.view.substr(offset - of_head, part.body_bytes - head.size()));
    offset += part.body_bytes;
    offered_bytes += part.bytes();
    if (part.is_last || offset >= bytes) break;
  }
  const std::uint64_t taken_bytes = connection_.offer(std::span(pieces).first(pieces_count));
  for (std::uint64_t left = taken_bytes; left > 0;) left -= send_part(left);
  return taken_bytes == offered_bytes;
}

/// Passes on the next part, without its first `left_bytes`, which have left.
///
/// returns  how many of these were the part's
std::uint64_t Outbox::send_part(std::uint64_t left_bytes) {
  const Part part = part_at(0);
  const std::uint64_t part_left_bytes = std::min(left_bytes, part.bytes());
  std::string_view header = part.header();
  header.remove_prefix(std::min<std::uint64_t>(left_bytes, header.size()));
  if (!header.empty()) connection_.send(header);
  std::uint64_t body_left_bytes = part_left_bytes - (part.header_bytes_count - header.size());
  std::uint64_t count = part.body_bytes;
  long_bytes_ -= count;
  send_some(long_.front().head, count, body_left_bytes);
  send_some(long_.front().tail, count, body_left_bytes);
  if (part.is_last) {
    bare_bytes_ -= long_.front().bare_bytes;
    long_.erase(long_.begin());
    if (long_.empty()) std::vector<LongReply>().swap(long_);
  }
  return part_left_bytes;
}

/// Passes on up to `count` bytes without the first `left_bytes`, and counts them.
void Outbox::send_some(net::SharedBytes& from, std::uint64_t& count, std::uint64_t& left_bytes) {
  const std::uint64_t size = std::min<std::uint64_t>(count, from.view.size());
  const std::uint64_t skipped = std::min(left_bytes, size);
  if (size > skipped) {
    connection_.send(net::SharedBytes{from.view.substr(skipped, size - skipped), from.keep_alive,
                                      from.is_for_one});
  }
  if (from.is_for_one) long_for_one_bytes_ -= size;
  from.view.remove_prefix(size);
  count -= size;
  left_bytes -= skipped;
}

std::uint64_t Outbox::waiting_bytes() const {
  const std::uint64_t sending_bytes = long_.empty() ? 0 : long_.front().bytes();
  return unsent_bytes() - sending_bytes;
}

}  // namespace muster::server
