#include "base/error/error_advice.h"

#include "base/reading_calls.h"

namespace muster::base {

std::string_view role_of_ranks(ErrorCode code) {
  switch (code) {
    case ErrorCode::timed_out: return "missing ";
    case ErrorCode::cancelled: return "cancelled by ";
    case ErrorCode::interrupted: return "by ";
    case ErrorCode::rank_lost: return "lost ";
    case ErrorCode::rank_left: return "left by ";
    case ErrorCode::rank_in_use: return "held by ";
    case ErrorCode::group_mismatch: return "formed by ";
    case ErrorCode::expired: return "sent by ";
    case ErrorCode::fenced: return "by ";
    case ErrorCode::library_missing:
    case ErrorCode::no_device:
    case ErrorCode::gloo:
    case ErrorCode::nccl: return "in the process of ";
    case ErrorCode::duplicate_device: return "used by ";
    case ErrorCode::mismatch: return "given by ";
    case ErrorCode::callback_failed: return "at ";
    default: return "";
  }
}

namespace {

/// Calls that a server is looked for with.
bool connects(std::string_view operation) {
  return operation == "connect" || operation == "reopen" || operation == "create";
}

std::string_view advice_for_address_in_use(const Error& error) {
  if (error.where.starts_with("unix:")) return "choose another path, or end what listens there";
  return error.operation == "create" ? "choose another port, or join the group by name there"
                                     : "choose another port, or end what listens there";
}

/// Calls on files, which know of no server and no group; their details say what to do.
bool uses_files(std::string_view operation) {
  return operation.starts_with("FileLock::") || operation.starts_with("SignalFolder::") ||
         operation.ends_with("local_rank_zero_first");
}

std::string_view advice_for_unavailable(const Error& error) {
  // Of a folder, whose error says all that is known.
  if (error.operation.starts_with("SharedWorkspace") ||
      error.operation.starts_with("with_gathered"))
    return "";
  const bool is_server = error.decided_by == "local";
  if (is_server && error.where.starts_with("unix:"))
    return "choose a path in a folder that is there";
  if (is_server) return "listen at an address of this machine";
  const bool is_hosted = error.operation == "create" && !error.rank_ranges.empty();
  return is_hosted ? "" : "check that the server runs at this address";
}

std::string_view advice_for_unknown_outcome(const Error& error) {
  const bool is_said = error.happened != Happened::unsaid || error.detail.starts_with("call ");
  if (is_said) return "";
  return only_reads(error.operation) ? "it changes nothing: call it again"
                                     : "it may or may not have happened; look before repeating it";
}

/// What holds for every call of these codes. Where it depends on what was refused, the detail says
/// what to do, and there is no advice here.
std::string_view advice_for(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_a_number: return "set it to a number first, or use another key";
    case ErrorCode::out_of_range: return "set it anew, or use another key";
    case ErrorCode::unsupported: return "update the older of the two sides";
    case ErrorCode::suspended: return "the session goes on when the connection is back";
    case ErrorCode::session_expired: return "reopen() begins a new session; form the groups anew";
    case ErrorCode::server_restarted: return "its state is gone; reopen() and form the groups anew";
    case ErrorCode::sequence_gap: return "use one handle per group and rank; leave and join anew";
    case ErrorCode::fenced: return "it was declared dead while alive; reopen() begins anew";
    case ErrorCode::rank_lost: return "regroup() goes on with the survivors";
    case ErrorCode::rank_left: return "regroup() goes on with the others";
    case ErrorCode::rank_in_use: return "end that process, or choose another rank";
    case ErrorCode::group_mismatch: return "give every rank the same values";
    case ErrorCode::group_closed:
      return "wait with standby for its next epoch, or choose another name";
    case ErrorCode::stale_epoch: return "use the handle of the newest epoch";
    case ErrorCode::interrupted: return "prepare for what they do; the group itself goes on";
    case ErrorCode::collective_mismatch: return "call the same collectives in the same order";
    case ErrorCode::expired: return "receive sooner, or form the group with a longer expiration";
    case ErrorCode::duplicate_device: return "give each rank a device of its own";
    case ErrorCode::no_device: return "see nvidia-smi and CUDA_VISIBLE_DEVICES there";
    case ErrorCode::aborted: return "create another communicator";
    case ErrorCode::internal: return "a defect of Muster; please report it";
    default: return "";
  }
}

}  // namespace

std::string_view advice_for(const Error& error) {
  const std::string_view operation = error.operation;
  if (error.group.empty() && uses_files(operation)) return "";
  switch (error.code) {
    case ErrorCode::busy:
      if (operation == "create" || operation == "drop_namespace") return "";  // the detail says it
      return connects(operation) ? "try again later, or give the server more room"
                                 : "wait until that call has ended";
    case ErrorCode::outcome_unknown: return advice_for_unknown_outcome(error);
    case ErrorCode::unavailable: return advice_for_unavailable(error);
    case ErrorCode::timed_out:
      return error.rank_ranges.empty() ? "" : "see what keeps them, or give more time";
    case ErrorCode::protocol_error:
      return connects(operation) ? "check that a Muster server listens at this address"
                                 : "update the older side; of one version, please report it";
    case ErrorCode::address_in_use: return advice_for_address_in_use(error);
    case ErrorCode::codec_mismatch:
      return tells_of_types(error) ? "use the same type on both sides, or one schema_id"
                                   : "use the same codec on both sides";
    case ErrorCode::mismatch:
      return operation == "attach" ? "create the communicator anew"
                                   : "give every rank the same values";
    case ErrorCode::nccl:
      return error.actual == 0 ? "" : "NCCL_DEBUG=WARN there makes NCCL say more";
    default: return advice_for(error.code);
  }
}

}  // namespace muster::base
