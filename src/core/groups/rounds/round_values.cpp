#include "core/groups/rounds/round_values.h"

#include <new>
#include <utility>

#include "core/session/reply.h"
#include "wire/writer.h"

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

/// The same bytes, which come in later events.
Payload RoundValues::join_later() const {
  std::vector<CopyPart> parts(by_rank_.size());
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    CopyPart& part = parts[rank];
    part.value = by_rank_[rank]->value;
    wire::Writer writer(part.text);
    if (rank == 0) {
      writer.u32(0);  // unconfirmed ranks
      writer.u32(static_cast<std::uint32_t>(parts.size()));
    }
    writer.u32(static_cast<std::uint32_t>(part.value->view().size()));
  }
  return shelf_.effects().long_copies().begin(shelf_.quota(), std::move(parts), Charging::always);
}

bool RoundValues::gather(std::uint64_t round, const RoundCall& call) {
  Payload later;
  std::string body;
  try {
    EffectList& effects = shelf_.effects();
    if (effects.may_copy(bytes_) && effects.long_copies().empty()) {
      effects.spend_on_copying(bytes_);
      body = joined();
    } else {
      later = join_later();
      if (later == nullptr) return false;
    }
  } catch (const std::bad_alloc&) {
    return false;
  }
  clear();  // first: a value is not held twice
  Payload value = later ? std::move(later) : make_payload_always(shelf_.quota(), std::move(body));
  common_ = &shelf_.store_always(RoundPlace{round, call.root}, call.codec, std::move(value));
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
