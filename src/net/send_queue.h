#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/channel.h"
#include "net/loop.h"

namespace muster::net {

/// Bytes that wait to be sent, in order: own bytes, and bytes by reference.
///
///     own bytes      | head 1 | head 2 | short replies |
///     by reference            ^value 1 ^value 2
///
/// All own bytes are in one string; a piece by reference stores how many of them are before it. So
/// a queued value costs `piece_bytes`, and short replies alone are one string. A queue that stays
/// has at most about twice the memory that it needs: see `fit`.
class SendQueue {
 public:
  /// Fewer are copied.
  static constexpr std::size_t by_reference_bytes_min = 2048;

  explicit SendQueue(Loop& loop) : loop_(loop) {}
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;

  void add(std::string_view bytes) {
    if (own_.empty()) own_ = loop_.take_spare();
    own_.append(bytes);
    last_own_bytes_ += bytes.size();
  }
  /// They are copied if they are few, or if nothing keeps them.
  void add(SharedBytes bytes);

  std::uint64_t bytes() const {
    return own_bytes() + (references_ == nullptr ? 0 : references_->bytes);
  }
  /// Of them, those that are copied here; those by reference that nothing else holds.
  std::uint64_t own_bytes() const { return own_.size() - own_taken_bytes_; }
  std::uint64_t for_one_bytes() const {
    return references_ == nullptr ? 0 : references_->for_one_bytes;
  }
  /// The number of pieces by reference.
  std::size_t pieces_count() const { return references_ == nullptr ? 0 : references_->count(); }
  /// The memory of the queue, used or not, without the bytes by reference.
  std::uint64_t allocated_bytes() const {
    const bool is_inline = own_.capacity() < sizeof(own_);
    const std::uint64_t of_references =
        references_ == nullptr
            ? 0
            : sizeof(References) + references_->pieces.capacity() * sizeof(Piece);
    return (is_inline ? 0 : own_.capacity()) + of_references;
  }

  /// The first bytes, as many as fit into `views`.
  ///
  /// returns  the number of views
  std::size_t front(std::span<iovec> views) const;
  /// The first `count` bytes have left.
  void took(std::uint64_t count);
  /// Gives memory back of which less than half is used: what is queued will wait.
  void fit();
  void clear();

 private:
  struct Piece {
    std::string_view view;  ///< the bytes that have not left
    std::shared_ptr<const void> keep_alive;
    std::uint64_t own_bytes_before;  ///< between the piece before and this one
    bool is_for_one;
  };

  /// Apart from the queue, since a connection without a session takes little memory.
  struct References {
    std::vector<Piece> pieces;
    std::size_t first = 0;    ///< the pieces before it have left
    std::uint64_t bytes = 0;  ///< that have not left
    std::uint64_t for_one_bytes = 0;
    std::size_t count() const { return pieces.size() - first; }
  };

  std::uint64_t take_pieces(std::uint64_t count);
  void drop_taken();

  Loop& loop_;
  std::string own_;
  std::uint64_t own_taken_bytes_ = 0;  ///< at the front of `own_`
  std::uint64_t last_own_bytes_ = 0;   ///< behind the last piece
  std::unique_ptr<References> references_;

 public:
  /// What a piece by reference takes, beside its bytes.
  static constexpr std::uint64_t piece_bytes = sizeof(Piece);
};

}  // namespace muster::net
