#include "core/keys/key_index.h"

#include "core/memory/hash.h"

namespace muster::core {
namespace {

/// Word by word, since a call of memcmp would cost as much as comparing a usual key.
bool is_same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  std::size_t at = 0;
  for (; at + 8 <= a.size(); at += 8) {
    if (word_at<std::uint64_t>(a.data() + at) != word_at<std::uint64_t>(b.data() + at))
      return false;
  }
  return tail_of(a.data() + a.size(), a.size() - at, a.size()) ==
         tail_of(b.data() + b.size(), b.size() - at, b.size());
}

}  // namespace

std::size_t KeyIndex::bucket_of(std::uint32_t hash) const {
  const std::size_t fine = hash & (2 * base_ - 1);
  return fine < buckets_ ? fine : hash & (base_ - 1);
}

Entry* KeyIndex::find(std::string_view key, std::uint32_t hash) const {
  if (size_ == 0) return nullptr;
  for (std::uint32_t slot = bucket(bucket_of(hash)); slot != Entry::none;) {
    Entry& entry = entries_[slot];
    if (entry.hash == hash && is_same(entry.key(), key)) return &entry;
    slot = entry.next_in_bucket;
  }
  return nullptr;
}

void KeyIndex::prefetch_bucket(std::uint32_t hash) const {
  if (size_ != 0) __builtin_prefetch(&bucket(bucket_of(hash)));
}

void KeyIndex::prefetch_entry(std::uint32_t hash) const {
  if (size_ == 0) return;
  const std::uint32_t first = bucket(bucket_of(hash));
  if (first != Entry::none) __builtin_prefetch(&entries_[first]);
}

void KeyIndex::prefetch_key(std::uint32_t hash) const {
  if (size_ == 0) return;
  const std::uint32_t first = bucket(bucket_of(hash));
  if (first != Entry::none) __builtin_prefetch(entries_[first].block.begin());
}

void KeyIndex::reserve_one() {
  // The next split may begin a segment; 31 bits of buckets are more than memory holds entries.
  if (buckets_ / segment_buckets < segments_.size()) return;
  auto segment = std::make_unique<Segment>();
  segment->fill(Entry::none);
  segments_.push_back(std::move(segment));
}

void KeyIndex::insert(Entry& entry) {
  std::uint32_t& first = bucket(bucket_of(entry.hash));
  entry.next_in_bucket = first;
  first = entry.slot;
  ++size_;
  if (size_ > buckets_) split_one();
}

void KeyIndex::remove(Entry& entry) {
  std::uint32_t* at = &bucket(bucket_of(entry.hash));
  while (*at != entry.slot) at = &entries_[*at].next_in_bucket;
  *at = entry.next_in_bucket;
  --size_;
  // Half of the load at which it grows, so that one key that comes and goes moves nothing.
  for (int count = 0; count < 2 && buckets_ > 1 && size_ < buckets_ / 2; ++count) join_one();
}

/// Moves from one bucket to a new last one what the next bit of the hash sends there.
void KeyIndex::split_one() {
  const std::size_t fresh = buckets_;
  std::uint32_t* at = &bucket(fresh - base_);
  std::uint32_t& moved = bucket(fresh);
  while (*at != Entry::none) {
    Entry& entry = entries_[*at];
    if ((entry.hash & (2 * base_ - 1)) != fresh) {
      at = &entry.next_in_bucket;
      continue;
    }
    *at = entry.next_in_bucket;
    entry.next_in_bucket = moved;
    moved = entry.slot;
  }
  if (++buckets_ == 2 * base_) base_ *= 2;
}

/// Undoes the last split. Segments go a whole segment late, for the same reason as above.
void KeyIndex::join_one() {
  if (buckets_ == base_) base_ /= 2;
  --buckets_;
  std::uint32_t& last = bucket(buckets_);
  std::uint32_t* at = &bucket(buckets_ - base_);
  while (*at != Entry::none) at = &entries_[*at].next_in_bucket;
  *at = last;
  last = Entry::none;
  if (segments_.size() > buckets_ / segment_buckets + 2) segments_.pop_back();
}

}  // namespace muster::core
