#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/rank_ranges.h"
#include "client/failure.h"
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

using Clock = std::chrono::steady_clock;

constexpr int lowest_rank = 0;
constexpr std::size_t told_in_full_max = 64;

/// Of the two rounds, so that no other all_gather or broadcast is taken for one of them.
struct Codec {
  static constexpr std::uint32_t id = codec_id::nccl;
  template <class T>
  static Result<std::string> encode(const T& object) {
    return RawCodec::encode(object);
  }
  template <class T>
  static Result<T> decode(std::string_view bytes) {
    return RawCodec::decode<T>(bytes);
  }
};

std::string text_of(const NcclUniqueId& id) { return {id.data(), id.size()}; }

bool is_nothing(const std::string& brought) { return brought.empty(); }

bool is_no_id(const std::string& brought) {
  return brought.size() != std::tuple_size_v<NcclUniqueId> ||
         std::all_of(brought.begin(), brought.end(), [](char byte) { return byte == 0; });
}

/// One call of `nccl_unique_id`.
class Agreement {
 public:
  Agreement(StatelessProcessGroup& group, Duration timeout, NcclIdOptions options)
      : group_(group), options_(std::move(options)), timeout_(timeout) {}

  Result<NcclUniqueId> run();

 private:
  Duration left() const;
  Error about(Error error) const;
  /// With the ranks for which `is_meant` holds, and who they are.
  template <class IsMeant>
  Error about_ranks(Error error, const IsMeant& is_meant);
  Error about_lowest(Error error);
  Result<NcclUniqueId> brought_id(const std::vector<std::string>& brought);
  Result<NcclUniqueId> made_here();
  Result<NcclUniqueId> received();

  StatelessProcessGroup& group_;
  NcclIdOptions options_;
  Duration timeout_;
  Clock::time_point began_ = Clock::now();
};

Duration Agreement::left() const {
  const auto passed = std::chrono::duration_cast<Duration>(Clock::now() - began_);
  return std::max(timeout_ - passed, Duration{1});
}

/// What every error of this call says.
Error Agreement::about(Error error) const {
  error.operation = "nccl_unique_id";
  error.group = group_.name();
  error.epoch = group_.epoch();
  error.elapsed = std::chrono::duration_cast<Duration>(Clock::now() - began_);
  return error;
}

template <class IsMeant>
Error Agreement::about_ranks(Error error, const IsMeant& is_meant) {
  const auto members = group_.members(left());
  for (int rank = 0; rank < group_.world_size(); ++rank) {
    if (!is_meant(rank)) continue;
    base::add_to(error.rank_ranges, rank);
    if (error.ranks.size() == told_in_full_max) continue;
    RankReport report;
    report.rank = rank;
    report.joined = true;
    if (members && static_cast<std::size_t>(rank) < members->size()) {  // they come by rank
      report.process = (*members)[static_cast<std::size_t>(rank)].process;
      report.silence = (*members)[static_cast<std::size_t>(rank)].silence;
    }
    error.ranks.push_back(std::move(report));
  }
  return about(std::move(error));
}

/// The error of rank 0's process, with who that is.
Error Agreement::about_lowest(Error error) {
  error.decided_by_rank = lowest_rank;
  return about_ranks(std::move(error), [](int rank) { return rank == lowest_rank; });
}

/// What the ranks bring, if all that do bring the same.
Result<NcclUniqueId> Agreement::brought_id(const std::vector<std::string>& brought) {
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
  for (int rank = 0; rank < group_.world_size(); ++rank) {
    if (!is_bad(rank)) continue;
    return about_ranks(client::invalid_argument("the id that was brought is no NCCL id: all zero"),
                       is_bad);
  }
  for (int rank = 0; rank < group_.world_size(); ++rank) {
    if (!differs(rank)) continue;
    return about_ranks(
        client::failure(ErrorCode::mismatch, "another NCCL id than that of rank " +
                                                 std::to_string(first - brought.begin())),
        differs);
  }
  auto id = Codec::decode<NcclUniqueId>(*first);
  if (!id) return about(std::move(id).error());
  return id;
}

Result<NcclUniqueId> Agreement::made_here() {
  auto id = nccl::make_id(options_.library, left());
  const auto told = group_.broadcast_obj<Codec>(nccl::encode_answer(id), lowest_rank, left());
  if (!id) return about_lowest(std::move(id).error());
  if (told) return id;
  nccl_give_up(*id);
  return about(told.error());
}

Result<NcclUniqueId> Agreement::received() {
  const auto answer = group_.broadcast_obj<Codec>(std::string(), lowest_rank, left());
  if (!answer) return about(answer.error());
  auto id = nccl::decode_answer(*answer);
  if (!id) return about_lowest(std::move(id).error());
  return id;
}

Result<NcclUniqueId> Agreement::run() {
  if (timeout_ <= Duration::zero()) {
    return about(client::invalid_argument("the timeout is not above zero"));
  }
  const auto brought =
      group_.all_gather_obj<Codec>(options_.id ? text_of(*options_.id) : std::string(), timeout_);
  if (!brought) return about(brought.error());
  if (!std::all_of(brought->begin(), brought->end(), is_nothing)) return brought_id(*brought);
  return group_.rank() == lowest_rank ? made_here() : received();
}

}  // namespace

Result<NcclUniqueId> nccl_unique_id(StatelessProcessGroup& group, Duration timeout,
                                    NcclIdOptions options) {
  return Agreement(group, timeout, std::move(options)).run();
}

MUSTER_END_NAMESPACE
