#include "runtime/shared/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace muster::runtime {

struct Checksum::State {
  XXH3_state_t of_xxh3;
};

Checksum::Checksum() : state_(std::make_unique<State>()) {
  XXH3_INITSTATE(&state_->of_xxh3);
  XXH3_64bits_reset(&state_->of_xxh3);
}

Checksum::~Checksum() = default;

void Checksum::add(const void* data, std::size_t bytes) {
  if (bytes > 0) XXH3_64bits_update(&state_->of_xxh3, data, bytes);
}

std::uint64_t Checksum::value() const { return XXH3_64bits_digest(&state_->of_xxh3); }

std::uint64_t Checksum::of(const void* data, std::size_t bytes) { return XXH3_64bits(data, bytes); }

}  // namespace muster::runtime
