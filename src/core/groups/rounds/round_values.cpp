#include "core/groups/rounds/round_values.h"

#include <new>
#include <utility>

#include "core/session/reply.h"

namespace muster::core {

std::uint64_t bytes_of(const std::vector<std::string_view>& values) {
  std::uint64_t bytes = 0;
  for (const std::string_view value : values) bytes += value.size();
  return bytes;
}

bool RoundValues::store(const Member& member, const wire::CollectiveCall& request) {
  const std::uint32_t world_size = member.roster.world_size();
  const auto put = [&](std::uint32_t rank, std::string_view value) {
    return shelf_.store(RoundPlace{request.round, rank}, request.codec, value);
  };
  if (request.collective == wire::Collective::broadcast) {
    common_ = put(member.rank, request.values.front());
    if (common_ == nullptr) return false;
  } else if (request.collective == wire::Collective::scatter) {
    by_rank_.assign(world_size, nullptr);
    for (std::uint32_t rank = 0; rank < world_size; ++rank) {
      if (rank == member.rank) continue;
      by_rank_[rank] = put(rank, request.values[rank]);
      if (by_rank_[rank] != nullptr) continue;
      clear();
      return false;
    }
  } else {
    by_rank_.resize(world_size);
    by_rank_[member.rank] = put(member.rank, request.values.front());
    if (by_rank_[member.rank] == nullptr) return false;
  }
  bytes_ += bytes_of(request.values);
  return true;
}

void RoundValues::withdraw(const RoundCall& call, std::uint32_t rank) {
  if (call.from_one()) return clear();
  bytes_ -= by_rank_[rank]->value->view().size();
  drop(rank);
}

std::string RoundValues::joined() const {
  wire::RoundReply reply;
  reply.values.reserve(by_rank_.size());
  for (const Object* value : by_rank_) reply.values.push_back(value->value->view());
  std::string body;
  body.reserve(8 + bytes_ + 4 * reply.values.size());
  wire::append_body(body, reply);
  return body;
}

bool RoundValues::gather(std::uint64_t round, const RoundCall& call) {
  std::string body;
  try {
    body = joined();
  } catch (const std::bad_alloc&) {
    return false;
  }
  clear();  // first: a value is not held twice
  common_ = &shelf_.store_always(RoundPlace{round, call.root}, call.codec, std::move(body));
  return true;
}

void RoundValues::let_age() {
  if (common_ != nullptr) shelf_.let_age(*common_);
  for (Object* value : by_rank_) {
    if (value != nullptr) shelf_.let_age(*value);
  }
}

void RoundValues::expire(Object& object) {
  if (common_ == &object) common_ = nullptr;
  const std::uint32_t rank = std::get<RoundPlace>(object.place).rank;
  if (of(rank) == &object) by_rank_[rank] = nullptr;
  shelf_.remove(object);
}

void RoundValues::remove(std::uint32_t rank) {
  shelf_.remove(*by_rank_[rank]);
  by_rank_[rank] = nullptr;
}

void RoundValues::clear() {
  for (std::uint32_t rank = 0; rank < by_rank_.size(); ++rank) drop(rank);
  by_rank_.clear();
  if (common_ != nullptr) shelf_.remove(*common_);
  common_ = nullptr;
  bytes_ = 0;
}

}  // namespace muster::core
