#include "core/key_index.h"

#include "core/table_state.h"

namespace muster::core {

std::size_t KeyIndex::bucket_of(std::uint32_t hash) const {
  const std::size_t fine = hash & (2 * base_ - 1);
  return fine < buckets_ ? fine : hash & (base_ - 1);
}

Entry* KeyIndex::find(std::string_view key, std::uint32_t hash) const {
  if (size_ == 0) return nullptr;
  Entry* entry = bucket(bucket_of(hash));
  while (entry != nullptr && (entry->hash != hash || entry->key != key)) {
    entry = entry->next_in_bucket;
  }
  return entry;
}

void KeyIndex::reserve_one() {
  // The next split may begin a segment; 31 bits of buckets are more than memory holds entries.
  if (buckets_ / segment_buckets >= segments_.size()) {
    segments_.push_back(std::make_unique<Segment>());
  }
}

void KeyIndex::insert(Entry& entry) {
  Entry*& first = bucket(bucket_of(entry.hash));
  entry.next_in_bucket = first;
  first = &entry;
  ++size_;
  if (size_ > buckets_) split_one();
}

void KeyIndex::remove(Entry& entry) {
  Entry** at = &bucket(bucket_of(entry.hash));
  while (*at != &entry) at = &(*at)->next_in_bucket;
  *at = entry.next_in_bucket;
  --size_;
  // Half of the load at which it grows, so that one key that comes and goes moves nothing.
  for (int count = 0; count < 2 && buckets_ > 1 && size_ < buckets_ / 2; ++count) join_one();
}

/// Moves from one bucket to a new last one what the next bit of the hash sends there.
void KeyIndex::split_one() {
  const std::size_t fresh = buckets_;
  Entry** at = &bucket(fresh - base_);
  Entry*& moved = bucket(fresh);
  while (*at != nullptr) {
    Entry& entry = **at;
    if ((entry.hash & (2 * base_ - 1)) != fresh) {
      at = &entry.next_in_bucket;
      continue;
    }
    *at = entry.next_in_bucket;
    entry.next_in_bucket = moved;
    moved = &entry;
  }
  if (++buckets_ == 2 * base_) base_ *= 2;
}

/// Undoes the last split. Segments go a whole segment late, for the same reason as above.
void KeyIndex::join_one() {
  if (buckets_ == base_) base_ /= 2;
  --buckets_;
  Entry*& last = bucket(buckets_);
  Entry** at = &bucket(buckets_ - base_);
  while (*at != nullptr) at = &(*at)->next_in_bucket;
  *at = last;
  last = nullptr;
  if (segments_.size() > buckets_ / segment_buckets + 2) segments_.pop_back();
}

}  // namespace muster::core
