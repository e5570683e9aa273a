#include "communicator/agreement.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/forked.h"
#include "base/host_pid.h"
#include "base/rank_ranges.h"
#include "client/failure.h"
#include "communicator/errors.h"
#include "communicator/messages.h"

namespace muster::communicator {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t told_in_full_max = 64;

/// Whether other ranks may have seen another outcome than this rank.
bool is_in_doubt(ErrorCode code) {
  return code != ErrorCode::timed_out && code != ErrorCode::rank_lost &&
         code != ErrorCode::rank_left && code != ErrorCode::collective_mismatch &&
         code != ErrorCode::cancelled && code != ErrorCode::interrupted;
}

/// How likely a failure is the cause and not a consequence: less so if the rank was told to end, if
/// it only waited, or if it saw that another rank is gone (ncclRemoteError).
int weight_of(const Error& failure) {
  constexpr std::uint64_t remote_error = 6;
  if (failure.code == ErrorCode::aborted) return 0;
  if (failure.code == ErrorCode::timed_out) return 1;
  if (failure.code == ErrorCode::nccl && failure.actual == remote_error) return 2;
  return 3;
}

/// The first of those with the most weight; there is at least one rank.
std::vector<std::optional<Error>>::const_iterator heaviest_of(
    const std::vector<std::optional<Error>>& failures) {
  return std::max_element(failures.begin(), failures.end(), [](const auto& a, const auto& b) {
    return (a ? weight_of(*a) : -1) < (b ? weight_of(*b) : -1);
  });
}

}  // namespace

Error caused_elsewhere(Error error) {
  if (error.code != ErrorCode::timed_out) error.code = ErrorCode::aborted;
  return error;
}

Duration Agreement::passed() const {
  return std::chrono::duration_cast<Duration>(Clock::now() - began_);
}

Duration Agreement::left() const { return std::max(timeout_ - passed(), Duration{1}); }

Agreement::Clock::time_point Agreement::vote_begins() const {
  return began_ + timeout_ - std::min<Duration>(timeout_ / 10, 1s);
}

Error Agreement::about(Error error) const {
  error.operation = operation_;
  error.happened = Happened::unsaid;  // that of one of its rounds says nothing of the whole
  error.group = group_.name();
  error.epoch = group_.epoch();
  if (error.where.empty()) error.where = group_.store().address();
  if (error.decided_by.empty()) error.decided_by = "client";
  error.elapsed = passed();
  return error;
}

Error Agreement::about_ranks(Error error, const std::function<bool(int rank)>& is_meant) const {
  const auto members = group_.members(left());
  for (int rank = 0; rank < group_.world_size(); ++rank) {
    if (!is_meant(rank)) continue;
    base::add_to(error.rank_ranges, rank);
    if (error.ranks.size() == told_in_full_max) continue;
    RankReport report;
    report.rank = rank;
    report.joined = true;
    const auto index = static_cast<std::size_t>(rank);
    if (members && index < members->size()) {  // they come by rank
      report.process = (*members)[index].process;
      report.silence = (*members)[index].silence;
    }
    error.ranks.push_back(std::move(report));
  }
  return about(std::move(error));
}

std::optional<Error> Agreement::refusal() const {
  if (timeout_ <= Duration::zero()) return about(client::invalid_argument("timeout: above zero"));
  const auto pid = group_.store().process().pid;
  if (pid == 0 || pid == base::host_pid()) return std::nullopt;
  return about(forked());
}

Result<std::vector<std::string>> Agreement::gather(const std::string& own) const {
  auto all = group_.all_gather_bytes(own, codec_, left());
  if (!all) return about(std::move(all).error());
  return all;
}

Result<void> Agreement::vote(const std::optional<Error>& failure, const Gate& gate) const {
  const auto reports = gather(encode_vote(failure));
  if (!reports) {
    if (is_in_doubt(reports.error().code)) {
      group_.leave_async(timeout_, [](const Result<void>&) {});
    }
    return reports.error();
  }
  std::vector<std::optional<Error>> failures;
  for (const std::string& bytes : *reports) {
    auto report = decode_vote(bytes);
    if (!report.has_value()) return about(std::move(report).error());
    failures.push_back(*std::move(report));
  }
  if (const auto& heaviest = *heaviest_of(failures)) {
    return about_ranks(*heaviest, [&](int rank) {
      const auto& each = failures[static_cast<std::size_t>(rank)];
      return each && each->code == heaviest->code && weight_of(*each) == weight_of(*heaviest);
    });
  }
  if (const auto reason = gate.reason()) return about(*reason);
  return {};
}

}  // namespace muster::communicator
