#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "client/failure.h"
#include "communicator/agreement.h"
#include "muster/codec_raw.h"
#include "muster/nccl_id.h"
#include "nccl/ids/id.h"
#include "nccl/ids/id_message.h"

// all_gather: who is there, and does anybody bring an id? -> all bring nothing: rank 0 makes one
// -> broadcast of it, or of why there is none -> the same answer everywhere.
//
// The id is made last, when all ranks are there: one that nobody uses costs rank 0's process a
// thread and a socket.

MUSTER_BEGIN_NAMESPACE

namespace nccl {
namespace {

constexpr int lowest_rank = 0;

std::string text_of(const UniqueId& id) { return {id.data(), id.size()}; }

bool is_nothing(const std::string& brought) { return brought.empty(); }

bool is_no_id(const std::string& brought) {
  return brought.size() != std::tuple_size_v<UniqueId> ||
         std::all_of(brought.begin(), brought.end(), [](char byte) { return byte == 0; });
}

/// One call of `unique_id`.
class IdExchange {
 public:
  IdExchange(const muster::communicator::Agreement& agreement, IdOptions options)
      : agreement_(agreement), options_(std::move(options)) {}

  Result<UniqueId> run() const;

 private:
  Error about_lowest(Error error) const;
  Result<UniqueId> brought_id(const std::vector<std::string>& brought) const;
  Result<std::string> broadcast(const std::string& own) const;
  Result<UniqueId> made_here() const;
  Result<UniqueId> received() const;

  const muster::communicator::Agreement& agreement_;
  const IdOptions options_;
};

/// The error of rank 0's process, with who that is.
Error IdExchange::about_lowest(Error error) const {
  error.decided_by_rank = lowest_rank;
  return agreement_.about_ranks(std::move(error), [](int rank) { return rank == lowest_rank; });
}

/// The value that ranks contributed, if all contributed values are equal.
Result<UniqueId> IdExchange::brought_id(const std::vector<std::string>& brought) const {
  const auto of_rank = [&](int rank) -> const std::string& {
    return brought[static_cast<std::size_t>(rank)];
  };
  const auto is_bad = [&](int rank) {
    return !is_nothing(of_rank(rank)) && is_no_id(of_rank(rank));
  };
  const auto first = std::find_if_not(brought.begin(), brought.end(), is_nothing);
  const auto differs = [&](int rank) {
    return !is_nothing(of_rank(rank)) && of_rank(rank) != *first;
  };
  const int world_size = agreement_.group().world_size();
  for (int rank = 0; rank < world_size; ++rank) {
    if (!is_bad(rank)) continue;
    return agreement_.about_ranks(
        client::invalid_argument("the id that was brought is no NCCL id: all zero"), is_bad);
  }
  for (int rank = 0; rank < world_size; ++rank) {
    if (!differs(rank)) continue;
    return agreement_.about_ranks(
        client::failure(ErrorCode::mismatch, "another NCCL id than that of rank " +
                                                 std::to_string(first - brought.begin())),
        differs);
  }
  auto id = RawCodec::decode<UniqueId>(*first);
  if (!id) return agreement_.about(std::move(id).error());
  return id;
}

Result<std::string> IdExchange::broadcast(const std::string& own) const {
  auto told = agreement_.group().broadcast_bytes(own, agreement_.codec(), Rank{lowest_rank},
                                                 agreement_.left());
  if (!told) return agreement_.about(std::move(told).error());
  return told;
}

Result<UniqueId> IdExchange::made_here() const {
  auto id = nccl_internal::make_id(options_.library, agreement_.left());
  const auto told = broadcast(nccl_internal::encode_id_message(id));
  if (!id) return about_lowest(std::move(id).error());
  if (told) return id;
  give_up(*id);
  return told.error();
}

Result<UniqueId> IdExchange::received() const {
  const auto answer = broadcast({});
  if (!answer) return answer.error();
  auto id = nccl_internal::decode_id_message(*answer);
  if (!id) return about_lowest(std::move(id).error());
  return id;
}

Result<UniqueId> IdExchange::run() const {
  const auto brought = agreement_.gather(options_.id ? text_of(*options_.id) : std::string());
  if (!brought) return brought.error();
  if (!std::all_of(brought->begin(), brought->end(), is_nothing)) return brought_id(*brought);
  return agreement_.group().rank() == lowest_rank ? made_here() : received();
}

}  // namespace

Result<UniqueId> unique_id(StatelessProcessGroup& group, Duration timeout, IdOptions options) {
  // A codec of its own, so that no other all_gather or broadcast is taken for one of its rounds.
  const muster::communicator::Agreement agreement(group, codec_id::nccl, timeout, "unique_id");
  if (auto refused = agreement.refusal()) return *std::move(refused);
  return IdExchange(agreement, std::move(options)).run();
}

}  // namespace nccl

MUSTER_END_NAMESPACE
