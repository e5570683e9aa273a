#include "server/peer/intake.h"

#include <algorithm>
#include <cstring>

#include "core/memory/frame_charging.h"

namespace muster::server {
namespace {

using core::Charging;

constexpr std::size_t first_bytes = 1024;
constexpr std::size_t room_bytes_min = 16 * 1024;  // for less it is not worth while

}  // namespace

void Intake::give(std::string_view bytes) {
  drop_cut();
  if (!bytes.empty() && bytes.data() == memory_.begin() + end_) {
    end_ += bytes.size();
    bytes = {};
  }
  given_ = bytes;
  skip_given();
}

void Intake::put_back() {
  if (std::exchange(cut_bytes_, 0) != 0) return;
  given_ = {given_.data() - given_cut_bytes_, given_.size() + given_cut_bytes_};
}

bool Intake::store(std::size_t count, std::size_t expected_bytes, Charging charging) {
  count = std::min(count, given_.size());
  if (!grow(stored().size() + count, expected_bytes, charging)) return false;
  std::memcpy(memory_.begin() + end_, given_.data(), count);
  end_ += count;
  given_.remove_prefix(count);
  return true;
}

/// Makes room for `bytes` from `begin_` on. Memory doubles with what has come, so that a peer that
/// declares much and sends little takes little. After a sixteenth of a request it lies where all of
/// it has room.
bool Intake::grow(std::size_t bytes, std::size_t expected_bytes, Charging charging) {
  if (bytes <= memory_.size_bytes() - begin_) return true;
  if (begin_ != 0) {
    std::memmove(memory_.begin(), memory_.begin() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    if (bytes <= memory_.size_bytes()) return true;
  }
  const std::size_t doubled = std::max(2 * memory_.size_bytes(), first_bytes);
  const std::size_t size_bytes = std::max(bytes, std::min(doubled, expected_bytes));
  const std::size_t later_bytes = end_ >= expected_bytes / 16 ? expected_bytes : size_bytes;
  if (size_bytes <= bytes_always(expected_bytes, charging)) charging = Charging::always;
  return memory_.grow(size_bytes, later_bytes, charging);
}

/// How much of a request is stored, whatever the quota says.
std::size_t Intake::bytes_always(std::size_t request_bytes, Charging charging) const {
  if (charging == Charging::normal && !has_share(request_bytes)) return 0;
  return has_spent_its_reserve() ? core::frame_read_bytes_min : core::frame_bytes_always;
}

std::span<char> Intake::room_for(std::size_t left) {
  const std::size_t bytes = stored().size();
  if (bytes < room_bytes_min || left < room_bytes_min) return {};
  const bool has_room = memory_.size_bytes() - end_ >= room_bytes_min ||
                        grow(bytes + room_bytes_min, bytes + left, Charging::normal);
  if (!has_room) return {};
  return {memory_.begin() + end_, std::min(left, memory_.size_bytes() - end_)};
}

void Intake::release() {
  memory_.release();
  begin_ = end_ = 0;
}

void Intake::skip(std::size_t more_bytes) {
  skip_bytes_ = more_bytes;
  release();
  skip_given();
}

void Intake::skip_given() {
  const std::size_t skipped = std::min(skip_bytes_, given_.size());
  skip_bytes_ -= skipped;
  given_.remove_prefix(skipped);
}

void Intake::keep() {
  drop_cut();
  if (!given_.empty()) store(given_.size(), stored().size() + given_.size(), Charging::always);
}

}  // namespace muster::server
