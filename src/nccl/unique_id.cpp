#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "client/failure.h"
#include "communicator/making.h"
#include "muster/codec_raw.h"
#include "muster/nccl.h"
#include "nccl/answer.h"
#include "nccl/id.h"

// all_gather: who is there, and does anybody bring an id? -> all bring nothing: rank 0 makes one
// -> broadcast of it, or of why there is none -> the same answer everywhere.
//
// The id is made last, when all ranks are there: one that nobody uses costs rank 0's process a
// thread and a socket.

MUSTER_BEGIN_NAMESPACE
namespace {

constexpr int lowest_rank = 0;

std::string text_of(const NcclUniqueId& id) { return {id.data(), id.size()}; }

bool is_nothing(const std::string& brought) { return brought.empty(); }

bool is_no_id(const std::string& brought) {
  return brought.size() != std::tuple_size_v<NcclUniqueId> ||
         std::all_of(brought.begin(), brought.end(), [](char byte) { return byte == 0; });
}

/// One call of `nccl_unique_id`.
class Agreement {
 public:
  Agreement(const communicator::Making& making, NcclIdOptions options)
      : making_(making), options_(std::move(options)) {}

  Result<NcclUniqueId> run() const;

 private:
  Error about_lowest(Error error) const;
  Result<NcclUniqueId> brought_id(const std::vector<std::string>& brought) const;
  Result<std::string> broadcast(const std::string& own) const;
  Result<NcclUniqueId> made_here() const;
  Result<NcclUniqueId> received() const;

  const communicator::Making& making_;
  const NcclIdOptions options_;
};

/// The error of rank 0's process, with who that is.
Error Agreement::about_lowest(Error error) const {
  error.decided_by_rank = lowest_rank;
  return making_.about_ranks(std::move(error), [](int rank) { return rank == lowest_rank; });
}

/// What the ranks bring, if all that do bring the same.
Result<NcclUniqueId> Agreement::brought_id(const std::vector<std::string>& brought) const {
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
  const int world_size = making_.group().world_size();
  for (int rank = 0; rank < world_size; ++rank) {
    if (!is_bad(rank)) continue;
    return making_.about_ranks(
        client::invalid_argument("the id that was brought is no NCCL id: all zero"), is_bad);
  }
  for (int rank = 0; rank < world_size; ++rank) {
    if (!differs(rank)) continue;
    return making_.about_ranks(
        client::failure(ErrorCode::mismatch, "another NCCL id than that of rank " +
                                                 std::to_string(first - brought.begin())),
        differs);
  }
  auto id = RawCodec::decode<NcclUniqueId>(*first);
  if (!id) return making_.about(std::move(id).error());
  return id;
}

Result<std::string> Agreement::broadcast(const std::string& own) const {
  auto told = making_.group().broadcast_bytes(own, making_.codec(), lowest_rank, making_.left());
  if (!told) return making_.about(std::move(told).error());
  return told;
}

Result<NcclUniqueId> Agreement::made_here() const {
  auto id = nccl::make_id(options_.library, making_.left());
  const auto told = broadcast(nccl::encode_answer(id));
  if (!id) return about_lowest(std::move(id).error());
  if (told) return id;
  nccl_give_up(*id);
  return told.error();
}

Result<NcclUniqueId> Agreement::received() const {
  const auto answer = broadcast({});
  if (!answer) return answer.error();
  auto id = nccl::decode_answer(*answer);
  if (!id) return about_lowest(std::move(id).error());
  return id;
}

Result<NcclUniqueId> Agreement::run() const {
  const auto brought = making_.gather(options_.id ? text_of(*options_.id) : std::string());
  if (!brought) return brought.error();
  if (!std::all_of(brought->begin(), brought->end(), is_nothing)) return brought_id(*brought);
  return making_.group().rank() == lowest_rank ? made_here() : received();
}

}  // namespace

Result<NcclUniqueId> nccl_unique_id(StatelessProcessGroup& group, Duration timeout,
                                    NcclIdOptions options) {
  // A codec of its own, so that no other all_gather or broadcast is taken for one of its rounds.
  const communicator::Making making(group, codec_id::nccl, timeout, "nccl_unique_id");
  if (auto refused = making.refusal()) return *std::move(refused);
  return Agreement(making, std::move(options)).run();
}

MUSTER_END_NAMESPACE
