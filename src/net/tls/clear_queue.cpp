#include "net/tls/clear_queue.h"

#include <algorithm>
#include <utility>

#include "net/tls/table.h"

namespace muster::net::tls {

namespace {

constexpr std::size_t by_reference_bytes_min = 2048;  // fewer are copied
constexpr std::size_t dropped_pieces_min = 16;
constexpr std::size_t own_bytes_max = 64 * 1024;  // then another piece begins

}  // namespace

void ClearQueue::add(std::string_view bytes) {
  if (pieces_.empty() || pieces_.back().shared.keep_alive ||
      pieces_.back().own.size() >= own_bytes_max) {
    pieces_.emplace_back();
    pieces_.back().own = loop_.take_spare();
  }
  pieces_.back().own.append(bytes);
  bytes_ += bytes.size();
  own_bytes_ += bytes.size();
}

void ClearQueue::add(SharedBytes bytes) {
  if (bytes.view.size() < by_reference_bytes_min || !bytes.keep_alive) return add(bytes.view);
  bytes_ += bytes.view.size();
  if (bytes.is_for_one) for_one_bytes_ += bytes.view.size();
  pieces_.push_back({{}, std::move(bytes)});
}

std::string_view ClearQueue::next_record(std::string& gathered) {
  const std::string_view first = pieces_[first_].view().substr(first_taken_bytes_);
  if (first.size() >= record_bytes_max || pieces_.size() == first_ + 1)
    return first.substr(0, record_bytes_max);
  gathered = loop_.take_spare();
  gathered.append(first);
  for (std::size_t index = first_ + 1; index < pieces_.size() && gathered.size() < record_bytes_max;
       ++index)
    gathered.append(pieces_[index].view().substr(0, record_bytes_max - gathered.size()));
  return gathered;
}

void ClearQueue::took(std::size_t bytes) {
  bytes_ -= bytes;
  while (bytes > 0) {
    Piece& piece = pieces_[first_];
    const std::size_t step = std::min(bytes, piece.view().size() - first_taken_bytes_);
    if (!piece.shared.keep_alive) {
      own_bytes_ -= step;
    } else if (piece.shared.is_for_one) {
      for_one_bytes_ -= step;
    }
    first_taken_bytes_ += step;
    bytes -= step;
    if (first_taken_bytes_ < piece.view().size()) return;
    if (!piece.shared.keep_alive) loop_.give_spare(std::move(piece.own));
    piece.shared = {};
    ++first_;
    first_taken_bytes_ = 0;
  }
  drop_taken();
}

/// Those that wait are moved only when as many have left.
void ClearQueue::drop_taken() {
  if (first_ < pieces_.size() && first_ < dropped_pieces_min) return;
  if (first_ * 2 < pieces_.size()) return;
  pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(first_));
  if (pieces_.empty() && pieces_.capacity() > dropped_pieces_min) pieces_.shrink_to_fit();
  first_ = 0;
}

void ClearQueue::clear() {
  pieces_.clear();
  first_ = first_taken_bytes_ = 0;
  bytes_ = own_bytes_ = for_one_bytes_ = 0;
}

}  // namespace muster::net::tls
