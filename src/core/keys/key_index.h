#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/keys/entry.h"
#include "core/memory/slab.h"

namespace muster::core {

/// Finds a table's entries by key. Linear hashing: each insertion splits at most one bucket and
/// each removal joins at most two, so that no single operation pays for a table's growth.
/// see  W. Litwin, "Linear hashing: a new tool for file and table addressing", VLDB 1980
class KeyIndex {
 public:
  explicit KeyIndex(Slab<Entry>& entries) : entries_(entries) {}

  /// The entry with this key and hash, or null.
  Entry* find(std::string_view key, std::uint32_t hash) const;

  // The steps of `find`, for memory that is not in a cache yet: each asks for what the next one
  // reads. With many keys, a step is done for all of them before the next one.
  void prefetch_bucket(std::uint32_t hash) const;
  void prefetch_entry(std::uint32_t hash) const;
  void prefetch_key(std::uint32_t hash) const;

  /// Makes room for one more, so that `insert` cannot fail.
  void reserve_one();
  void insert(Entry& entry);
  void remove(Entry& entry);

  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t segment_buckets = 256;
  using Segment = std::array<std::uint32_t, segment_buckets>;  // the first entry's slot, or none

  std::size_t bucket_of(std::uint32_t hash) const;
  std::uint32_t& bucket(std::size_t index) const {
    return (*segments_[index / segment_buckets])[index % segment_buckets];
  }
  void split_one();
  void join_one();

  Slab<Entry>& entries_;
  std::vector<std::unique_ptr<Segment>> segments_;
  std::size_t base_ = 1;     // buckets before this round of splitting; a power of two
  std::size_t buckets_ = 1;  // base_ <= buckets_ < 2 * base_
  std::size_t size_ = 0;
};

}  // namespace muster::core
