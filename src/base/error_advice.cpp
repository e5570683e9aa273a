#include "base/error_advice.h"

namespace muster::base {

std::string_view role_of_ranks(ErrorCode code) {
  switch (code) {
    case ErrorCode::timed_out: return "missing ";
    case ErrorCode::cancelled: return "cancelled by ";
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
    default: return "";
  }
}

std::string_view advice_for(const Error& error) {
  switch (error.code) {
    case ErrorCode::too_large: return "split it, or raise the server's limit";
    case ErrorCode::not_a_number: return "the value is no decimal 64-bit number";
    case ErrorCode::out_of_range: return "the sum does not fit into 64 bits";
    case ErrorCode::unsupported: return "the other side is of another version; update it";
    case ErrorCode::busy: return "try again when the other call has ended, or the server has room";
    case ErrorCode::would_deadlock: return "use callback forms in handlers, one thread per GPU";
    case ErrorCode::forked: return "connect a store of its own in the child";
    case ErrorCode::outcome_unknown:
      return "it may or may not have happened; look before repeating a change";
    case ErrorCode::resource_exhausted:
      return error.limit == 0 ? "" : "remove something, or raise the server's limit";
    case ErrorCode::unavailable:
      return error.decided_by == "local" ? "listen at an address of this machine"
                                         : "check that the server runs at this address";
    case ErrorCode::suspended: return "ends by itself when the connection is back";
    case ErrorCode::session_expired: return "reopen() begins a new session";
    case ErrorCode::server_restarted: return "its state is gone; reopen() and form the groups anew";
    case ErrorCode::timed_out:
      return error.rank_ranges.empty() ? "" : "see what keeps them, or give more time";
    case ErrorCode::permission_denied: return "use loopback, or allow it where the server starts";
    case ErrorCode::sequence_gap: return "one handle per group and rank; leave and join anew";
    case ErrorCode::fenced: return "it was declared dead while alive; reopen() begins anew";
    case ErrorCode::protocol_error: return "check that a Muster server listens at this address";
    case ErrorCode::address_in_use:
      return "choose another port, or name the group to join it there";
    case ErrorCode::rank_lost: return "regroup() goes on with the survivors";
    case ErrorCode::rank_left: return "regroup() goes on with the others";
    case ErrorCode::rank_in_use: return "end that process, or choose another rank";
    case ErrorCode::mismatch:
    case ErrorCode::group_mismatch: return "give every rank the same values";
    case ErrorCode::group_closed: return "wait for the next epoch with standby";
    case ErrorCode::stale_epoch: return "use the handle of the newest epoch";
    case ErrorCode::collective_mismatch: return "call the same collectives in the same order";
    case ErrorCode::codec_mismatch: return "use the same codec on both sides";
    case ErrorCode::expired: return "receive sooner, or form the group with a longer expiration";
    case ErrorCode::library_missing:
      return "install NCCL there, name its folder in LD_LIBRARY_PATH, or give its path";
    case ErrorCode::duplicate_device: return "give each rank a device of its own";
    case ErrorCode::no_device: return "see nvidia-smi and CUDA_VISIBLE_DEVICES there";
    case ErrorCode::nccl: return "NCCL_DEBUG=WARN there makes NCCL say more";
    case ErrorCode::internal: return "a defect of Muster; please report it";
    default: return "";
  }
}

}  // namespace muster::base
