#include "muster/error.h"

MUSTER_BEGIN_NAMESPACE

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::too_large: return "too_large";
    case ErrorCode::not_a_number: return "not_a_number";
    case ErrorCode::out_of_range: return "out_of_range";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::codec_failure: return "codec_failure";
    case ErrorCode::busy: return "busy";
    case ErrorCode::would_deadlock: return "would_deadlock";
    case ErrorCode::forked: return "forked";
    case ErrorCode::not_found: return "not_found";
    case ErrorCode::timed_out: return "timed_out";
    case ErrorCode::cancelled: return "cancelled";
    case ErrorCode::closed: return "closed";
    case ErrorCode::outcome_unknown: return "outcome_unknown";
    case ErrorCode::resource_exhausted: return "resource_exhausted";
    case ErrorCode::unavailable: return "unavailable";
    case ErrorCode::suspended: return "suspended";
    case ErrorCode::session_expired: return "session_expired";
    case ErrorCode::server_restarted: return "server_restarted";
    case ErrorCode::fenced: return "fenced";
    case ErrorCode::protocol_error: return "protocol_error";
    case ErrorCode::address_in_use: return "address_in_use";
    case ErrorCode::permission_denied: return "permission_denied";
    case ErrorCode::rank_lost: return "rank_lost";
    case ErrorCode::rank_left: return "rank_left";
    case ErrorCode::rank_in_use: return "rank_in_use";
    case ErrorCode::group_mismatch: return "group_mismatch";
    case ErrorCode::group_closed: return "group_closed";
    case ErrorCode::stale_epoch: return "stale_epoch";
    case ErrorCode::collective_mismatch: return "collective_mismatch";
    case ErrorCode::interrupted: return "interrupted";
    case ErrorCode::codec_mismatch: return "codec_mismatch";
    case ErrorCode::sequence_gap: return "sequence_gap";
    case ErrorCode::expired: return "expired";
    case ErrorCode::library_missing: return "library_missing";
    case ErrorCode::nccl: return "nccl";
    case ErrorCode::mismatch: return "mismatch";
    case ErrorCode::duplicate_device: return "duplicate_device";
    case ErrorCode::gloo: return "gloo";
    case ErrorCode::no_device: return "no_device";
    case ErrorCode::aborted: return "aborted";
    case ErrorCode::environment: return "environment";
    case ErrorCode::not_initialized: return "not_initialized";
    case ErrorCode::callback_failed: return "callback_failed";
    case ErrorCode::way_missing: return "way_missing";
    case ErrorCode::internal: return "internal";
  }
  return "unknown";
}

std::string_view name_of(Happened happened) {
  switch (happened) {
    case Happened::unsaid: return "unsaid";
    case Happened::no: return "no";
    case Happened::maybe: return "maybe";
  }
  return "unknown";
}

std::string_view name_of(LossCause cause) {
  switch (cause) {
    case LossCause::none: return "none";
    case LossCause::closed: return "closed";
    case LossCause::heartbeat: return "heartbeat";
    case LossCause::restarted: return "restarted";
    case LossCause::reported: return "reported";
    case LossCause::revoked: return "revoked";
  }
  return "unknown";
}

MUSTER_END_NAMESPACE
