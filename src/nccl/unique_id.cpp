#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/failure.h"
#include "muster/codec_raw.h"
#include "muster/nccl.h"
#include "nccl/answer.h"
#include "nccl/bootstrap_socket.h"
#include "nccl/library.h"

// all_gather: who is there, and does anybody bring an id? -> all bring nothing: rank 0 makes one
// -> broadcast of it, or of why there is none -> the same answer everywhere.
//
// The id is made last, when all ranks are there: one that nobody uses costs rank 0's process a
// thread and a socket.

MUSTER_BEGIN_NAMESPACE
namespace {

using Clock = std::chrono::steady_clock;

constexpr int lowest_rank = 0;

std::string text_of(const NcclUniqueId& id) { return {id.data(), id.size()}; }

bool is_zero(const NcclUniqueId& id) {
  return std::all_of(id.begin(), id.end(), [](char byte) { return byte == 0; });
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
  Error about_lowest(Error error);
  Error disagreement(const std::vector<std::string>& brought);
  void add_rank(Error& error, int rank, const std::vector<MemberInfo>& members) const;
  Result<NcclUniqueId> brought_id(const std::vector<std::string>& brought);
  Result<NcclUniqueId> made_at_lowest();
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

void Agreement::add_rank(Error& error, int rank, const std::vector<MemberInfo>& members) const {
  RankReport report;
  report.rank = rank;
  report.joined = true;
  for (const MemberInfo& member : members) {
    if (member.rank == rank && member.state != MemberState::candidate) {
      report.process = member.process;
      report.silence = member.silence;
    }
  }
  error.ranks.push_back(std::move(report));
  error.rank_ranges.push_back({rank, rank});
}

/// The error of rank 0's process, with who that is.
Error Agreement::about_lowest(Error error) {
  const auto members = group_.members(left());
  error.decided_by_rank = lowest_rank;
  add_rank(error, lowest_rank, members ? *members : std::vector<MemberInfo>());
  return about(std::move(error));
}

Error Agreement::disagreement(const std::vector<std::string>& brought) {
  const auto is_brought = [](const std::string& id) { return !id.empty(); };
  const auto first = std::find_if(brought.begin(), brought.end(), is_brought);
  const auto members = group_.members(left());
  Error error = client::failure(ErrorCode::mismatch, "another NCCL id than that of rank " +
                                                         std::to_string(first - brought.begin()));
  for (auto id = first; id != brought.end(); ++id) {
    if (!is_brought(*id) || *id == *first) continue;
    add_rank(error, static_cast<int>(id - brought.begin()),
             members ? *members : std::vector<MemberInfo>());
  }
  return about(std::move(error));
}

/// What the ranks bring, if all that do bring the same.
Result<NcclUniqueId> Agreement::brought_id(const std::vector<std::string>& brought) {
  const std::string* first = nullptr;
  for (const std::string& id : brought) {
    if (id.empty()) continue;
    if (first == nullptr) first = &id;
    if (id != *first) return disagreement(brought);
  }
  auto id = RawCodec::decode<NcclUniqueId>(*first);
  if (!id) return about(std::move(id).error());
  return id;
}

Result<NcclUniqueId> Agreement::made_here() {
  const auto library = nccl::Library::load(options_.library);
  auto id = library ? library->new_unique_id() : library.error();
  std::optional<nccl::BootstrapSocket> socket;
  if (id) socket.emplace(*id).close_on_exec();
  const auto told = group_.broadcast_obj<RawCodec>(nccl::encode_answer(id), lowest_rank, left());
  if (!id) return about_lowest(std::move(id).error());
  if (told) return id;
  socket->give_up();
  return about(told.error());
}

Result<NcclUniqueId> Agreement::received() {
  const auto answer = group_.broadcast_obj<RawCodec>(std::string(), lowest_rank, left());
  if (!answer) return about(answer.error());
  auto id = nccl::decode_answer(*answer);
  if (!id) return about_lowest(std::move(id).error());
  return id;
}

Result<NcclUniqueId> Agreement::made_at_lowest() {
  return group_.rank() == lowest_rank ? made_here() : received();
}

Result<NcclUniqueId> Agreement::run() {
  if (timeout_ <= Duration::zero()) {
    return about(client::invalid_argument("the timeout is not above zero"));
  }
  if (options_.id && is_zero(*options_.id)) {
    return about(client::invalid_argument("the id is all zero; was it ever made?"));
  }
  const auto brought = group_.all_gather_obj<RawCodec>(
      options_.id ? text_of(*options_.id) : std::string(), timeout_);
  if (!brought) return about(brought.error());
  const bool is_any_brought = std::any_of(brought->begin(), brought->end(),
                                          [](const std::string& id) { return !id.empty(); });
  return is_any_brought ? brought_id(*brought) : made_at_lowest();
}

}  // namespace

Result<NcclUniqueId> nccl_unique_id(StatelessProcessGroup& group, Duration timeout,
                                    NcclIdOptions options) {
  return Agreement(group, timeout, std::move(options)).run();
}

MUSTER_END_NAMESPACE
