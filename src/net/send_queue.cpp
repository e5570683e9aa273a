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
  if (references_ == nullptr) references_ = std::make_unique<References>();
  references_->bytes += bytes.view.size();
  if (bytes.is_for_one) references_->for_one_bytes += bytes.view.size();
  references_->pieces.push_back({bytes.view, std::move(bytes.keep_alive),
                                 std::exchange(last_own_bytes_, 0), bytes.is_for_one});
}

std::size_t SendQueue::front(std::span<iovec> views) const {
  std::string_view own = std::string_view(own_).substr(own_taken_bytes_);
  std::size_t count = 0;
  const auto put = [&](std::string_view bytes) {
    views[count++] = {const_cast<char*>(bytes.data()), bytes.size()};
  };
  std::span<const Piece> pieces;
  if (references_ != nullptr) pieces = std::span(references_->pieces).subspan(references_->first);
  for (const Piece& piece : pieces) {
    if (count == views.size()) return count;
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

/// returns  how many of the bytes that have left were behind the last piece
std::uint64_t SendQueue::take_pieces(std::uint64_t count) {
  References& all = *references_;
  for (; count > 0 && all.first < all.pieces.size(); ++all.first) {
    Piece& piece = all.pieces[all.first];
    const std::uint64_t of_own = std::min<std::uint64_t>(count, piece.own_bytes_before);
    own_taken_bytes_ += of_own;
    piece.own_bytes_before -= of_own;
    count -= of_own;
    const std::uint64_t of_piece = std::min<std::uint64_t>(count, piece.view.size());
    all.bytes -= of_piece;
    if (piece.is_for_one) all.for_one_bytes -= of_piece;
    piece.view.remove_prefix(of_piece);
    count -= of_piece;
    if (piece.own_bytes_before != 0 || !piece.view.empty()) break;
    piece.keep_alive.reset();
  }
  return count;
}

void SendQueue::took(std::uint64_t count) {
  if (references_ != nullptr) count = take_pieces(count);
  own_taken_bytes_ += count;
  last_own_bytes_ -= count;
  if (bytes() == 0) return clear();
  drop_taken();
}

/// What waits is moved only when as much has left.
void SendQueue::drop_taken() {
  if (own_taken_bytes_ >= unused_own_bytes_min && own_taken_bytes_ >= own_bytes()) {
    own_.erase(0, std::exchange(own_taken_bytes_, 0));
  }
  if (references_ == nullptr) return;
  References& all = *references_;
  if (all.first >= unused_pieces_min && all.first >= all.count()) {
    all.pieces.erase(all.pieces.begin(),
                     all.pieces.begin() + static_cast<std::ptrdiff_t>(all.first));
    all.first = 0;
  }
}

void SendQueue::fit() {
  if (own_.capacity() > 2 * own_bytes() + unused_own_bytes_min) {
    std::string fitting(own_, own_taken_bytes_, own_bytes());
    own_taken_bytes_ = 0;
    own_.swap(fitting);
    loop_.give_spare(std::move(fitting));
  }
  if (references_ == nullptr) return;
  References& all = *references_;
  if (all.pieces.capacity() > 2 * all.count() + unused_pieces_min) {
    all.pieces = std::vector<Piece>(
        std::make_move_iterator(all.pieces.begin() + static_cast<std::ptrdiff_t>(all.first)),
        std::make_move_iterator(all.pieces.end()));
    all.first = 0;
  }
}

void SendQueue::clear() {
  if (!own_.empty()) loop_.give_spare(std::exchange(own_, {}));
  references_.reset();
  own_taken_bytes_ = last_own_bytes_ = 0;
}

}  // namespace muster::net
