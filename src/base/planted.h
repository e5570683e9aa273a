#pragma once

// Bugs that a build for tests plants, one at a time, to show that the simulation finds each:
// tests/sim/bugs.cpp tells what they are. In every other build the macro is `false`, and nothing
// of them is compiled.

#ifdef MUSTER_PLANTED_BUGS

#include <cstdint>

namespace muster::base {

enum class Bug : std::uint8_t {
  none,
  abandoned_calls_wait_on,
  acknowledgement_trims_too_much,
  any_token_resumes,
  applied_twice_on_resume,
  barrier_not_confirmed,
  bound_key_survives,
  cancelled_by_nobody,
  candidate_admitted_twice,
  candidates_not_taken,
  cause_is_always_closed,
  compare_set_compares_nothing,
  complete_join_waits,
  confirmation_lost,
  dead_rank_not_noticed,
  dead_told_as_live,
  done_rounds_dropped_on_break,
  each_rank_its_own_deadline,
  elapsed_is_wrong,
  expire_data_drops_younger,
  expired_object_hangs,
  failed_regroup_forgotten,
  get_not_woken,
  grace_ignored,
  grace_is_longer,
  heartbeat_is_no_life,
  in_flight_never_falls,
  key_outlives_its_time,
  last_seen_forgotten,
  late_candidate_names_nobody,
  late_join_names_nobody,
  late_rank_gets_another_outcome,
  late_regroup_names_nobody,
  late_reply_to_next_call,
  later_losses_not_named,
  leave_drops_objects,
  leave_not_told,
  live_holder_displaced,
  mass_expiry_after_pause,
  members_not_told,
  memory_not_given_back,
  mismatch_forgotten,
  mismatch_names_nobody,
  name_spaces_are_one,
  never_suspended,
  never_unavailable,
  no_backstop,
  no_reconnect,
  observer_takes_part,
  off_by_one_after_time_out,
  old_connection_ends_session,
  other_groups_epoch,
  parked_limit_ignored,
  pending_round_survives_loss,
  ranges_name_all,
  receive_not_woken,
  recover_confirms_late,
  regroup_refused_busy,
  released_before_the_last,
  repetition_keeps_later_deadline,
  report_changes_nothing,
  requests_lost_on_reconnect,
  resend_gets_new_deadline,
  restart_not_noticed,
  restarted_rank_refused,
  results_lost_on_disconnect,
  rounds_left_behind,
  sender_not_in_stream_key,
  session_end_not_told,
  silence_taken_for_close,
  silent_close_is_death,
  silent_session_lives_on,
  source_waits_for_all,
  stale_epoch_accepted,
  suspended_early,
  take_gives_to_two,
  take_not_woken,
  time_out_names_all,
  time_out_names_nobody,
  timed_out_receive_consumes,
  timeout_is_longer,
  touch_does_not_prolong,
  ttl_kept_after_set,
  two_holders_of_one_rank,
  wait_ends_with_the_first,
  wait_not_woken,
  waiter_leaked_on_disconnect,
  wrong_object_delivered,
};

inline Bug planted = Bug::none;

/// By these bytes a file is known that has any of it.
[[gnu::used]] inline const char planted_mark[] = "MUSTER_PLANTED_BUGS";

}  // namespace muster::base

#define MUSTER_PLANTED(bug) (::muster::base::planted == ::muster::base::Bug::bug)
#else
#define MUSTER_PLANTED(bug) false
#endif
