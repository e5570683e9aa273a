#include "net/send_queue.h"

#include <algorithm>
#include <utility>

namespace muster::net {
namespace {

/// Less is not worth moving what waits.
constexpr std::size_t unused_own_bytes_min = 256;
constexpr std::size_t unused_pieces_min = 8;

}  // namespace

void SendQueue::add(SharedBytes bytes) {
  if (bytes.view.size() < by_reference_bytes_min || !bytes.keep_alive) return add(bytes.view);
  by_reference_bytes_ += bytes.view.size();
  if (bytes.is_for_one) for_one_bytes_ += bytes.view.size();
  pieces_.push_back({bytes.view, std::move(bytes.keep_alive), std::exchange(last_own_bytes_, 0),
                     bytes.is_for_one});
}

std::size_t SendQueue::front(std::span<iovec> views) const {
  std::string_view own = std::string_view(own_).substr(own_taken_bytes_);
  std::size_t count = 0;
  const auto put = [&](std::string_view bytes) {
    views[count++] = {const_cast<char*>(bytes.data()), bytes.size()};
  };
  for (std::size_t index = first_; index < pieces_.size() && count < views.size(); ++index) {
    const Piece& piece = pieces_[index];
    if (piece.own_bytes_before != 0) {
      put(own.substr(0, piece.own_bytes_before));
      own.remove_prefix(piece.own_bytes_before);
      if (count == views.size()) return count;
    }
    put(piece.view);
  }
  if (last_own_bytes_ != 0 && count < views.size()) put(own);
  return count;
}

void SendQueue::take_own(std::uint64_t count) {
  own_taken_bytes_ += count;
  own_bytes_ -= count;
}

void SendQueue::took(std::uint64_t count) {
  for (; count > 0 && first_ < pieces_.size(); ++first_) {
    Piece& piece = pieces_[first_];
    const std::uint64_t of_own = std::min<std::uint64_t>(count, piece.own_bytes_before);
    take_own(of_own);
    piece.own_bytes_before -= of_own;
    count -= of_own;
    const std::uint64_t of_piece = std::min<std::uint64_t>(count, piece.view.size());
    by_reference_bytes_ -= of_piece;
    if (piece.is_for_one) for_one_bytes_ -= of_piece;
    piece.view.remove_prefix(of_piece);
    count -= of_piece;
    if (piece.own_bytes_before != 0 || !piece.view.empty()) break;
    piece.keep_alive.reset();
  }
  take_own(count);
  last_own_bytes_ -= count;
  if (bytes() == 0) return clear();
  drop_taken();
}

/// What waits is moved only when as much has left.
void SendQueue::drop_taken() {
  if (own_taken_bytes_ >= unused_own_bytes_min && own_taken_bytes_ >= own_bytes_) {
    own_.erase(0, std::exchange(own_taken_bytes_, 0));
  }
  if (first_ >= unused_pieces_min && first_ >= pieces_count()) {
    pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
}

void SendQueue::fit() {
  if (own_.capacity() > 2 * own_bytes_ + unused_own_bytes_min) {
    std::string fitting(own_, own_taken_bytes_, own_bytes_);
    own_taken_bytes_ = 0;
    own_.swap(fitting);
    loop_.give_spare(std::move(fitting));
  }
  if (pieces_.capacity() > 2 * pieces_count() + unused_pieces_min) {
    pieces_ = std::vector<Piece>(
        std::make_move_iterator(pieces_.begin() + static_cast<std::ptrdiff_t>(first_)),
        std::make_move_iterator(pieces_.end()));
    first_ = 0;
  }
}

void SendQueue::clear() {
  if (!own_.empty()) loop_.give_spare(std::exchange(own_, {}));
  if (pieces_.capacity() != 0) std::vector<Piece>().swap(pieces_);
  own_taken_bytes_ = first_ = last_own_bytes_ = 0;
  own_bytes_ = by_reference_bytes_ = for_one_bytes_ = 0;
}

}  // namespace muster::net
