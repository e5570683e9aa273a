#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/channel.h"
#include "net/loop.h"

namespace muster::net::tls {

/// What waits to be encrypted, in order: own bytes, and bytes by reference.
class ClearQueue {
 public:
  explicit ClearQueue(Loop& loop) : loop_(loop) {}

  void add(std::string_view bytes);
  void add(SharedBytes bytes);
  /// As much from its front as a record takes, from where that lies if it is one piece.
  ///
  /// gathered  takes the bytes else
  std::string_view next_record(std::string& gathered);
  /// These have been encrypted.
  void took(std::size_t bytes);
  void clear();
  /// What `next_record` has gathered is not used any more.
  void give_back(std::string gathered) { loop_.give_spare(std::move(gathered)); }

  std::uint64_t bytes() const { return bytes_; }
  /// Of them, those that are held here; those by reference that nobody else holds.
  std::uint64_t own_bytes() const { return own_bytes_; }
  std::uint64_t for_one_bytes() const { return for_one_bytes_; }

 private:
  struct Piece {
    std::string own;
    SharedBytes shared;
    std::string_view view() const { return shared.keep_alive ? shared.view : own; }
  };

  void drop_taken();

  Loop& loop_;
  std::vector<Piece> pieces_;
  std::size_t first_ = 0;              ///< that is not encrypted as a whole
  std::size_t first_taken_bytes_ = 0;  ///< of that one
  std::uint64_t bytes_ = 0;
  std::uint64_t own_bytes_ = 0;
  std::uint64_t for_one_bytes_ = 0;
};

}  // namespace muster::net::tls
