#include <algorithm>

#include "oracle.h"

// Which error may come when: each has a cause that the oracle must know of.

namespace muster::sim {
namespace {

bool ends_a_process(wire::Operation operation) {
  return operation == wire::operation<wire::ReportDead> ||
         operation == wire::operation<wire::EndSession>;
}

}  // namespace

using namespace std::chrono_literals;

/// A member that joins takes part in a regroup by that.
bool Oracle::takes_part_in_regroup(wire::Operation operation) {
  return operation == wire::operation<wire::Regroup> || operation == wire::operation<wire::Join>;
}

bool Oracle::is_allowed(const Ask& ask, const Error& error) {
  const Life& life = lives_[ask.client];
  const wire::ServerLimits& limits = terms_.limits;
  const GroupModel::Number epoch{ask.incarnation, ask.epoch};
  // Who was well for so long before the end has been answered by the server.
  const Instant since =
      std::max(ask.begun - 1s, now() - longer(2s) - limits.slack - 8 * terms_.delay_max);
  const bool is_quiet = life.is_calm(since, now()) && server_is_calm(ask.begun - 1s, now()) &&
                        !life.was_held(ask.begun - 1s, now());
  check_reports(ask.client, error);
  if (life.is_stranger) return error.code != ErrorCode::internal;
  switch (error.code) {
    case ErrorCode::timed_out: return may_time_out(ask, error);
    case ErrorCode::outcome_unknown: {
      const Duration apart = longer(ask.timeout) - ask.timeout + 6 * terms_.delay_max;
      return !is_quiet || apart > limits.slack;
    }
    case ErrorCode::cancelled:  // who is a member and joins takes part in a regroup of its epoch
      if (ask.is_cancelled) return true;
      return !error.ranks.empty() &&
             groups.may_be_cancelled({ask.incarnation, error.epoch}, error.round);
    case ErrorCode::suspended: {
      const Duration least = shorter(limits.session_timeout * 4 / 5) - 2 * limits.heartbeat - 1s;
      const Instant from = now() - longer(limits.session_timeout) - 3s;
      return life.disturbed_within(from, now()) >= least || !server_is_calm(from, now());
    }
    case ErrorCode::unavailable:
      return !life.is_calm(ask.begun - 3s, now()) || !server_is_calm(ask.begun - 3s, now());
    case ErrorCode::session_expired: {
      const Duration silent = life.heard ? running() - *life.heard : Duration(0);
      return std::max(life.longest_silence, silent) >= shorter(limits.session_timeout) ||
             life.longest_closed >= shorter(limits.grace) || life.revoked_until;
    }
    case ErrorCode::server_restarted:
      return restarts_ > 0 && error.expected < error.actual &&
             (ask.incarnation == 0 || ask.incarnation == error.expected);
    case ErrorCode::fenced: return life.was_reported || life.may_be_fenced;
    case ErrorCode::rank_lost: check_loss(ask.client, error); return true;
    case ErrorCode::rank_left:
      check_left(ask.client, error, takes_part_in_regroup(ask.operation));
      return true;
    case ErrorCode::stale_epoch: return error.epoch < ask.epoch || groups.may_be_over(epoch);
    case ErrorCode::collective_mismatch:
      check_callers(ask, error);
      // All ask for the same size, and who joins takes part in whatever regroup there is.
      return ask.operation != wire::operation<wire::Join> && groups.may_mismatch(epoch);
    case ErrorCode::interrupted: return groups.may_be_interrupted(epoch, error);
    case ErrorCode::expired: return terms_.has_expiration || groups.may_be_expired(epoch);
    case ErrorCode::permission_denied: {
      const bool is_for_supervisors =
          ends_a_process(ask.operation) || ask.operation == wire::operation<wire::DropNameSpace>;
      return life.may_be_denied(ask.begun) ||
             (is_for_supervisors ? life.role != wire::Role::supervisor
                                 : life.role == wire::Role::observer);
    }
    case ErrorCode::resource_exhausted: return terms_.has_small_limits;
    case ErrorCode::not_found:
      return ends_a_process(ask.operation) || ask.timeout == Duration::zero() ||
             ask.operation == wire::operation<wire::Touch> ||
             ask.operation == wire::operation<wire::InspectGroup>;
    case ErrorCode::rank_in_use: return may_be_in_use(ask, error);
    case ErrorCode::group_closed:
    case ErrorCode::group_mismatch:
    case ErrorCode::invalid_argument: return may_be_refused(ask, error);
    case ErrorCode::sequence_gap:  // of objects behind one that failed
      return ask.operation == wire::operation<wire::Send> && error.actual > error.expected;
    case ErrorCode::closed: return life.said_goodbye;
    default: return false;
  }
}

/// How a join, a regroup or the drop of a namespace is turned away.
bool Oracle::may_be_refused(const Ask& ask, const Error& error) const {
  const bool joins = ask.operation == wire::operation<wire::Join>;
  const GroupModel::Number epoch{ask.incarnation, error.epoch};
  switch (error.code) {
    // J9; whether the group was whole, the witness knows.
    case ErrorCode::group_closed: return joins && !ask.is_standby && !error.rank_ranges.empty();
    // All ask for the same, but an epoch that was formed by a regroup may be smaller.
    case ErrorCode::group_mismatch:
      return joins && error.actual == ask.size && error.expected != ask.size &&
             groups.may_have_size(epoch, error.expected);
    // A member has another rank now than the one that it asks for; or nobody may drop the namespace
    // that it is in; or `regroup(everyone)` made the group larger than the size that a member asks
    // for. The witness knows whether a rank beyond that size lives.
    case ErrorCode::invalid_argument:
      return ask.operation == wire::operation<wire::DropNameSpace> ||
             (joins && groups.was_member(ask.group, ask.client)) ||
             (ask.operation == wire::operation<wire::Regroup> && ask.size != 0 &&
              groups.has_ranks_beyond({ask.incarnation, ask.epoch}, ask.size));
    default: return false;
  }
}

/// R2: how long the call took, by the clock of its process.
void Oracle::check_elapsed(const Ask& ask, const Error& error) {
  const Duration took = now() - ask.begun;
  if (error.elapsed >= shorter(took) && error.elapsed <= longer(took) + 1ms) return;
  problem(ask.what + ": its error is wrong about how long it took");
}

/// R1 and R3: not before the deadline that it speaks of.
bool Oracle::may_time_out(const Ask& ask, const Error& error) {
  check_missing(ask, error);
  const bool is_shared = ask.operation == wire::operation<wire::CollectiveCall> ||
                         ask.operation == wire::operation<wire::Regroup> ||
                         ask.operation == wire::operation<wire::Recover>;
  if (is_shared || (ask.operation == wire::operation<wire::Join> && error.decided_by_rank >= 0)) {
    return error.decided_by_rank >= 0 || ask.operation == wire::operation<wire::Recover>;
  }
  return now() - ask.begun >= shorter(ask.timeout);
}

}  // namespace muster::sim
