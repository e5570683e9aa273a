#include "core/groups/roster.h"

#include <algorithm>

#include "core/groups/objects.h"
#include "core/session/failure.h"

namespace muster::core {
namespace {

/// A session is in few groups: looking at all that it is a member of is faster than a search among
/// the ranks.
constexpr std::size_t members_looked_at_max = 8;

/// `ranks` in ascending order.
std::vector<std::uint32_t> sorted(std::vector<std::uint32_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

}  // namespace

Member::Member(Epoch& its_epoch, Roster& its_roster, std::uint32_t its_rank, Session& its_session)
    : epoch(its_epoch),
      roster(its_roster),
      rank(its_rank),
      session(&its_session),
      process(its_session.process) {}

Member::~Member() { unlink(); }

void Member::unlink() {
  if (session == nullptr) return;
  // Few: one per group that the session is in.
  const auto place = std::find(session->members.begin(), session->members.end(), this);
  if (place != session->members.end()) session->members.erase(place);
  session = nullptr;
  --roster.reference_count;
}

void Member::hold(std::uint64_t handle_epoch) {
  handle.epoch = handle_epoch;
  look_for_handle();
}

void Member::add_claim() {
  ++handle.claims;
  look_for_handle();
}

void Member::drop_claim() {
  --handle.claims;
  look_for_handle();
}

void Member::look_for_handle() {
  if (!is_unheld()) return handle.end.disarm();
  if (handle.end.armed()) return;
  EngineServices& services = roster.services;
  services.timers().arm(handle.end, services.now() + services.options().limits.grace);
}

Failure make_failure(Quota& quota, const Error& error) {
  std::string body;
  wire::append_error(body, error);
  return {error.code, make_payload_always(quota, std::move(body))};
}

Answer answer_of_failure(const Failure& failure, Duration elapsed, std::uint64_t round) {
  // An error is a list of fields: those that differ from caller to caller go in front.
  Error own;
  own.elapsed = elapsed;
  own.round = round;
  Answer answer;
  answer.code = static_cast<std::uint16_t>(failure.code);
  wire::append_error(answer.head, own);
  answer.tail = failure.body;
  return answer;
}

void add_rank_in_full(Error& error, RankReport report) {
  if (error.ranks.size() == wire::ranks_in_full_max) error.ranks.pop_back();
  const auto rank = static_cast<std::uint32_t>(report.rank);
  add_rank(error, rank, [&] { return std::move(report); });
}

RankReport report_of(EngineServices& services, std::uint32_t rank, const Session& session) {
  RankReport report;
  report.rank = static_cast<int>(rank);
  report.joined = true;
  report.process = session.process;
  report.silence = services.silence(session);
  return report;
}

RankReport report_of(EngineServices& services, const Member& member) {
  RankReport report;
  report.rank = static_cast<int>(member.rank);
  report.joined = true;
  report.process = member.process;
  report.silence = member.live() ? services.silence(*member.session) : member.silence_at_end;
  report.cause = member.cause;
  return report;
}

RankReport report_of_absent(std::uint32_t rank) {
  RankReport report;
  report.rank = static_cast<int>(rank);
  return report;
}

Roster::Roster(EngineServices& its_services, Recorder its_recorder, std::string its_group,
               std::uint64_t its_epoch)
    : services(its_services),
      recorder(its_recorder),
      group(std::move(its_group)),
      epoch(its_epoch) {}

Member* Roster::find(const Session& session) {
  if (session.members.size() <= members_looked_at_max) {
    for (Member* member : session.members) {
      if (&member->roster == this) return member;
    }
    return nullptr;
  }
  const auto place = std::lower_bound(
      rank_of_session_.begin(), rank_of_session_.end(), session.id,
      [](const auto& entry, std::uint64_t session_id) { return entry.first < session_id; });
  if (place == rank_of_session_.end() || place->first != session.id) return nullptr;
  Member& member = members[place->second];
  return member.session == &session ? &member : nullptr;
}

bool Roster::is_known_to(const Session& session) {
  if (session.may_see(tenant)) return true;
  const Member* const member = find(session);
  return member != nullptr && member->live();
}

void Roster::index_sessions() {
  rank_of_session_.reserve(members.size());
  for (const Member& member : members)
    rank_of_session_.emplace_back(member.session->id, member.rank);
  std::sort(rank_of_session_.begin(), rank_of_session_.end());
}

Error Roster::error(ErrorCode code, std::string detail) const {
  Error error = failure(code, std::move(detail));
  error.group = group;
  error.epoch = epoch;
  error.decided_by = "server";
  return error;
}

void Roster::blame(Error& error, const Member& member) const {
  add_rank(error, member.rank, [&] { return report_of(services, member); });
}

Error Roster::loss_error() const {
  Error lost_error = error(ErrorCode::rank_lost, "");
  lost_error.cause = members[lost.front()].cause;
  for (const std::uint32_t rank : sorted(lost)) {
    blame(lost_error, members[rank]);
    if (members[rank].cause != lost_error.cause) lost_error.cause = LossCause::none;
  }
  return lost_error;
}

Error Roster::leave_error() const {
  Error left_error = error(ErrorCode::rank_left, "");
  for (const std::uint32_t rank : sorted(left)) blame(left_error, members[rank]);
  return left_error;
}

Error Roster::leave_error(const Member& member) const {
  Error left_error = error(ErrorCode::rank_left, "");
  blame(left_error, member);
  return left_error;
}

const Failure& Roster::loss(Quota& quota) {
  if (lost_in_loss_ != lost.size()) {
    loss_ = make_failure(quota, loss_error());
    lost_in_loss_ = lost.size();
  }
  return loss_;
}

void Roster::record(GroupEventKind what, const Error* why, const Member* member) const {
  recorder.record({what, group, tenant, epoch, world_size(), why, member, nullptr});
}

std::string text_of(const Roster& roster) {
  return "group " + quoted_text(roster.group) + " epoch " + std::to_string(roster.epoch);
}

}  // namespace muster::core
