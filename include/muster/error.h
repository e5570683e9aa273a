#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/config.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

/// What went wrong. The numbers are part of the wire protocol and never change.
enum class ErrorCode : std::uint16_t {
  // The call itself.
  invalid_argument = 1,  ///< an argument breaks its documented rule; nothing was done
  too_large = 2,         ///< `actual` bytes or items exceed `limit`; nothing was done
  not_a_number = 3,      ///< `add` found a value that is no decimal 64-bit number
  out_of_range = 4,      ///< `add` would overflow 64 bits
  unsupported = 5,       ///< the other side does not know this operation or version
  codec_failure = 6,     ///< the codec refused the object or the bytes
  busy = 7,              ///< another call of this kind is pending, or the server is full
  would_deadlock = 8,    ///< a blocking call from a handler that runs on the I/O thread
  forked = 9,            ///< the calling process is a forked child of the owner

  // How a call ended that waited.
  not_found = 20,           ///< the key is absent and the call did not want to wait
  timed_out = 21,           ///< decided by the server at the deadline; `ranks` did not come
  cancelled = 22,           ///< `cancel()` ended it; `ranks` says who cancelled a round
  closed = 23,              ///< the store or group was closed by its owner
  outcome_unknown = 24,     ///< no answer came by the deadline; it may or may not have happened
  resource_exhausted = 25,  ///< a named limit of the server is reached: `limit`, `actual`

  // The connection, the session, the server.
  unavailable = 40,        ///< no server answers at the address, or it is stopping
  suspended = 41,          ///< cut off for most of the session timeout; ends when it resumes
  session_expired = 42,    ///< silent past the session timeout; `reopen()` starts anew
  server_restarted = 43,   ///< another incarnation answers: `expected` old, `actual` new
  fenced = 44,             ///< declared dead by somebody (`decided_by`) while alive
  protocol_error = 45,     ///< the other side broke the protocol, or is no Muster server
  address_in_use = 46,     ///< another program listens on the address
  permission_denied = 47,  ///< the server refuses what the caller may not do

  // Groups.
  rank_lost = 60,            ///< `ranks` died, `cause` says how it was noticed
  rank_left = 61,            ///< `ranks` left of their own will
  rank_in_use = 62,          ///< a live process (`ranks`) holds the rank
  group_mismatch = 63,       ///< the group forms with other values: `expected`, `actual`, `ranks`
  group_closed = 64,         ///< the group is whole and takes nobody in
  stale_epoch = 65,          ///< the handle belongs to an epoch that is over
  collective_mismatch = 66,  ///< ranks called different collectives in one round
  codec_mismatch = 67,       ///< sender and receiver use different codecs
  sequence_gap = 68,         ///< a stream's counters disagree: `expected`, `actual`
  expired = 69,              ///< the object outlived the group's data expiration

  // Communicators, in the libraries muster-nccl and muster-gloo.
  library_missing = 80,   ///< libnccl cannot be loaded, or is none
  nccl = 81,              ///< NCCL refused: `actual` is its ncclResult_t
  mismatch = 82,          ///< `ranks` gave another value where all must give the same
  duplicate_device = 83,  ///< `ranks` share one CUDA device
  no_device = 84,         ///< the CUDA driver does not work, or has no such device
  aborted = 85,           ///< the communicator was aborted
  gloo = 86,              ///< Gloo failed, or there is another one in the process

  internal = 90,  ///< a defect of Muster; please report it
};

/// The code's name as it is written here, such as "timed_out"; "unknown" for other numbers.
MUSTER_API std::string_view name_of(ErrorCode code);

/// How the loss of a rank was noticed.
enum class LossCause : std::uint8_t {
  none = 0,
  closed = 1,     ///< its connection ended and it did not come back within the grace
  heartbeat = 2,  ///< it was silent for the session timeout
  restarted = 3,  ///< a new process claimed its rank
  reported = 4,   ///< somebody called `report_dead`
};

MUSTER_API std::string_view name_of(LossCause cause);

/// One rank as an error tells of it.
struct RankReport {
  int rank = 0;         ///< -1: no rank, the process that embeds the server
  bool joined = false;  ///< false: never joined, so nothing below is known
  ProcessInfo process;
  std::optional<Duration> silence;  ///< since its last byte, when the error was made
  std::string called;               ///< what it called instead, or which timeout it gave
};

/// Everything that is known about a failure. Fields that do not apply are empty or zero;
/// docs/errors.md lists per code which are set.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string operation;               ///< the public call, such as "barrier"
  std::string group;                   ///< name of the group
  std::uint64_t epoch = 0;             ///< 0: none
  std::uint64_t round = 0;             ///< from 1; 0: none
  Duration elapsed{0};                 ///< of the whole call
  std::string decided_by;              ///< "server", "client", or "rank 2"
  int decided_by_rank = -1;            ///< the rank whose deadline or call decided; -1: none
  Duration decided_by_timeout{0};      ///< the timeout that rank had given
  std::string where;                   ///< the server's address, or the peer's
  std::vector<RankReport> ranks;       ///< the first 64 ranks at fault, in full
  std::vector<RankRange> rank_ranges;  ///< all ranks at fault
  LossCause cause = LossCause::none;
  std::uint64_t expected = 0;
  std::uint64_t actual = 0;
  std::uint64_t limit = 0;
  std::string detail;  ///< what happened and what to do, for people

  /// One line for logs: what, where, who and what to do. The first 8 ranks are told of in full,
  /// further ones by number. Compare fields, never this text.
  MUSTER_API std::string message() const;
};

MUSTER_END_NAMESPACE
