#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace muster::core {

/// Objects in numbered slots that never move while they live. Chunks of 64 slots are given back
/// when they are empty, so that a table that was large once does not stay so.
template <class T>
class Slab {
 public:
  using Index = std::uint32_t;
  static constexpr Index chunk_slots = 64;

  Slab() = default;
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  ~Slab() {
    for (Index index = 0; index < end(); ++index) {
      if (T* object = at(index)) object->~T();
    }
  }

  /// `T(index, args...)` in a free slot.
  template <class... Args>
  T& emplace(Args&&... args) {
    Chunk& chunk = chunk_with_room();
    const auto slot = static_cast<Index>(std::countr_one(chunk.used));
    T* object =
        new (chunk.at(slot)) T(chunk.number * chunk_slots + slot, std::forward<Args>(args)...);
    chunk.used |= std::uint64_t{1} << slot;
    return *object;
  }

  /// Never throws, never allocates.
  void erase(Index index) {
    Chunk& chunk = *chunks_[index / chunk_slots];
    reinterpret_cast<T*>(chunk.at(index % chunk_slots))->~T();
    chunk.used &= ~(std::uint64_t{1} << (index % chunk_slots));
    if (!chunk.listed) {
      chunk.listed = true;
      roomy_.push_back(chunk.number);  // within the capacity that was reserved for all chunks
    }
    if (chunk.used == 0) give_back(chunk);
  }

  /// Of a slot that is not free.
  T& operator[](Index index) {
    return *std::launder(
        reinterpret_cast<T*>(chunks_[index / chunk_slots]->at(index % chunk_slots)));
  }

  /// Null when the slot is free.
  T* at(Index index) {
    Chunk* chunk = chunks_[index / chunk_slots].get();
    if (chunk == nullptr || (chunk->used >> (index % chunk_slots) & 1) == 0) return nullptr;
    return std::launder(reinterpret_cast<T*>(chunk->at(index % chunk_slots)));
  }

  /// The first slot of the next chunk when `index` begins one without objects; else `index` + 1.
  Index after(Index index) const {
    const bool empty = index % chunk_slots == 0 && chunks_[index / chunk_slots] == nullptr;
    return index + (empty ? chunk_slots : 1);
  }

  /// One past the highest slot with an object.
  Index end() const {
    if (chunks_.empty()) return 0;
    const auto full_chunks = static_cast<Index>(chunks_.size() - 1);
    return full_chunks * chunk_slots +
           (chunk_slots - static_cast<Index>(std::countl_zero(chunks_.back()->used)));
  }

 private:
  struct Chunk {
    std::uint64_t used = 0;  // one bit per slot
    Index number = 0;
    bool listed = true;  // in roomy_
    alignas(T) std::byte storage[chunk_slots * sizeof(T)];

    void* at(Index slot) { return storage + slot * sizeof(T); }
  };

  Chunk& chunk_with_room() {
    while (!roomy_.empty()) {
      const Index number = roomy_.back();
      if (number < chunks_.size() && chunks_[number] != nullptr) {
        Chunk& chunk = *chunks_[number];
        if (~chunk.used != 0) return chunk;
        chunk.listed = false;
      } else if (number < chunks_.size()) {
        chunks_[number] = new_chunk(number);  // stays listed
        return *chunks_[number];
      }
      roomy_.pop_back();
    }
    return append_chunk();
  }

  Chunk& append_chunk() {
    const auto number = static_cast<Index>(chunks_.size());
    if (roomy_.capacity() < chunks_.size() + 1) roomy_.reserve(2 * (chunks_.size() + 1));
    auto chunk = new_chunk(number);
    chunks_.push_back(std::move(chunk));
    roomy_.push_back(number);
    return *chunks_.back();
  }

  std::unique_ptr<Chunk> new_chunk(Index number) {
    auto chunk = spare_ != nullptr ? std::move(spare_) : std::unique_ptr<Chunk>(new Chunk);
    chunk->number = number;
    chunk->listed = true;
    return chunk;
  }

  /// Keeps one chunk, so that one object that comes and goes does not allocate each time. The
  /// chunk's number stays in roomy_; at the end of the table numbers go with their chunks.
  void give_back(Chunk& chunk) {
    auto owned = std::move(chunks_[chunk.number]);
    if (spare_ == nullptr) spare_ = std::move(owned);
    while (!chunks_.empty() && chunks_.back() == nullptr) chunks_.pop_back();
  }

  std::vector<std::unique_ptr<Chunk>> chunks_;  // null: no object in its slots
  std::vector<Index> roomy_;                    // chunks with a free slot, and some without
  std::unique_ptr<Chunk> spare_;
};

}  // namespace muster::core
