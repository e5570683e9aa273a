#include "core/session/answers.h"

#include <bit>
#include <utility>

namespace muster::core {
namespace {

constexpr std::size_t buckets_min = 4;
constexpr std::size_t idle_buckets_max = 64;          // a burst's are given back when it is over
constexpr std::uint64_t spread = 0x9e3779b97f4a7c15;  // 2^64 by the golden ratio: neighbours part

}  // namespace

std::size_t Answers::bucket_of(std::uint64_t request_id) const {
  return (request_id * spread) >> (64 - std::countr_zero(buckets_.size()));
}

Answer* Answers::find(std::uint64_t request_id) {
  if (size_ == 0) return nullptr;
  for (Kept* kept = buckets_[bucket_of(request_id)].get(); kept != nullptr;
       kept = kept->next.get()) {
    if (kept->request_id == request_id) return &kept->answer;
  }
  return nullptr;
}

const Answer& Answers::insert(node_type kept) {
  if (size_ == buckets_.size()) grow();
  node_type& first = buckets_[bucket_of(kept->request_id)];
  kept->next = std::move(first);
  first = std::move(kept);
  ++size_;
  return first->answer;
}

void Answers::grow() {
  std::vector<node_type> grown(size_ == 0 ? buckets_min : 2 * size_);
  buckets_.swap(grown);
  for (node_type& from : grown) {
    while (node_type kept = std::move(from)) {
      from = std::move(kept->next);
      node_type& to = buckets_[bucket_of(kept->request_id)];
      kept->next = std::move(to);
      to = std::move(kept);
    }
  }
}

Answers::node_type Answers::take(std::uint64_t request_id) {
  if (size_ == 0) return nullptr;
  for (node_type* at = &buckets_[bucket_of(request_id)]; *at != nullptr; at = &(*at)->next) {
    if ((*at)->request_id != request_id) continue;
    node_type taken = std::move(*at);
    *at = std::move(taken->next);
    --size_;
    if (size_ == 0 && buckets_.size() > idle_buckets_max) buckets_ = std::vector<node_type>();
    return taken;
  }
  return nullptr;
}

}  // namespace muster::core
