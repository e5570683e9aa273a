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
  not_a_number = 3,      ///< `add`: the value is not a decimal 64-bit number
  out_of_range = 4,      ///< `add` would overflow 64 bits
  unsupported = 5,       ///< the other side does not know this operation or version
  codec_failure = 6,     ///< the codec refused the object or the bytes
  busy = 7,              ///< another call of this kind is pending, or the server is full
  would_deadlock = 8,    ///< a blocking call from a handler that runs on the I/O thread
  forked = 9,            ///< the calling process is a forked child of the owner

  // How a call that waited ended.
  not_found = 20,           ///< the key is absent, and the call was not to wait
  timed_out = 21,           ///< decided by the server at the deadline; `ranks` are missing
  cancelled = 22,           ///< it was cancelled; `ranks` says who cancelled a collective
  closed = 23,              ///< the store or group was closed by its owner
  outcome_unknown = 24,     ///< no answer came by the deadline: see `happened`
  resource_exhausted = 25,  ///< a named limit of the server is reached: `limit`, `actual`

  // The connection, the session, the server.
  unavailable = 40,        ///< no server answers at the address, or it is stopping
  suspended = 41,          ///< cut off for most of the session timeout; ends on reconnect
  session_expired = 42,    ///< cut off past the session timeout; `reopen()` begins a new session
  server_restarted = 43,   ///< another incarnation answers: `expected` old, `actual` new
  fenced = 44,             ///< this process was declared dead (`decided_by`) while alive
  protocol_error = 45,     ///< the other side broke the protocol, or is not a Muster server
  address_in_use = 46,     ///< another program listens on the address
  permission_denied = 47,  ///< the caller may not do that

  // Groups.
  rank_lost = 60,            ///< `ranks` died; `cause` says how the server noticed
  rank_left = 61,            ///< `ranks` have left the group
  rank_in_use = 62,          ///< a live process (`ranks`) holds the rank
  group_mismatch = 63,       ///< the group forms with other values: `expected`, `actual`, `ranks`
  group_closed = 64,         ///< the group is complete and accepts no more ranks
  stale_epoch = 65,          ///< the handle belongs to an epoch that is over
  collective_mismatch = 66,  ///< ranks called different collectives in one round
  codec_mismatch = 67,       ///< sender and receiver use different codecs or types
  sequence_gap = 68,         ///< a stream's counters disagree: `expected`, `actual`
  expired = 69,              ///< the object was older than the group's data expiration
  interrupted = 70,          ///< `ranks` have interrupted the group, for the reason in `detail`

  // Communicators, in the libraries muster-nccl and muster-gloo.
  library_missing = 80,   ///< libnccl or libcuda cannot be loaded, or cannot be used
  nccl = 81,              ///< NCCL failed: `actual` is its ncclResult_t
  mismatch = 82,          ///< `ranks` gave another value than the others; all must be equal
  duplicate_device = 83,  ///< `ranks` share one CUDA device
  no_device = 84,         ///< the CUDA driver does not work, or has no such device
  aborted = 85,           ///< the communicator was aborted
  gloo = 86,              ///< Gloo failed, or the process has a second copy of Gloo

  // The runtime, in the library muster-runtime.
  environment = 100,      ///< a variable is missing, wrong, or contradicts another one: `detail`
  not_initialized = 101,  ///< `Runtime::init` comes first, or has failed
  callback_failed = 102,  ///< the host's own function failed at `ranks`: see `detail`
  way_missing = 103,      ///< tensors cannot go that way in this group: `detail`

  internal = 90,  ///< a defect of Muster; please report it
};

/// The code's name, as in this file, such as "timed_out"; "unknown" for other numbers.
MUSTER_API std::string_view name_of(ErrorCode code);

/// How the server noticed that a rank is lost.
enum class LossCause : std::uint8_t {
  none = 0,
  closed = 1,     ///< its connection ended, and it did not reconnect within the grace
  heartbeat = 2,  ///< nothing was received from it for the session timeout
  restarted = 3,  ///< a new process has joined with its rank
  reported = 4,   ///< a process called `report_dead`
  revoked = 5,    ///< its credential was removed, or its right to take part in groups
};

MUSTER_API std::string_view name_of(LossCause cause);

/// Whether a call that failed has done what it was to change.
enum class Happened : std::uint8_t {
  unsaid = 0,  ///< the call changes nothing: it may be repeated
  no = 1,      ///< surely not, now or later: it may be repeated
  maybe = 2,   ///< it was sent, and what became of it is not known: look before you repeat it
};

MUSTER_API std::string_view name_of(Happened happened);

/// What an error says about one rank.
struct RankReport {
  int rank = 0;         ///< -1: no rank, the process that embeds the server
  bool joined = false;  ///< false: it never joined, so the other fields are empty
  ProcessInfo process;
  std::optional<Duration> silence;    ///< time from its last byte until the error was made
  std::string called;                 ///< what it called instead, or the timeout that it gave
  LossCause cause = LossCause::none;  ///< how its loss was noticed, if it is lost
};

/// Where in a stream a call was.
struct StreamPosition {
  int source = 0;
  int destination = 0;
  std::uint64_t tag = 0;
  std::uint64_t sequence = 0;  ///< of the object to be sent or received; from 0

  friend bool operator==(const StreamPosition& a, const StreamPosition& b) {
    return a.source == b.source && a.destination == b.destination && a.tag == b.tag &&
           a.sequence == b.sequence;
  }
};

/// Everything that is known about a failure. Fields that do not apply are empty or zero;
/// docs/errors.md lists the fields that each code sets.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string operation;                 ///< the public call, such as "barrier"
  std::string group;                     ///< name of the group
  std::uint64_t epoch = 0;               ///< 0: none
  std::uint64_t round = 0;               ///< number of the collective, from 1; 0: none
  std::optional<StreamPosition> stream;  ///< of every error of send_obj and recv_obj
  Duration elapsed{0};                   ///< from the beginning of the call
  std::string decided_by;                ///< "server", "client", or "rank 2"
  int decided_by_rank = -1;              ///< the rank whose deadline or call decided; -1: none
  Duration decided_by_timeout{0};        ///< the timeout that rank had given
  std::string where;                     ///< address of the server, or of the peer; a file's path
  std::vector<RankReport> ranks;         ///< the first 64 ranks at fault, in full
  std::vector<RankRange> rank_ranges;    ///< all ranks at fault
  LossCause cause = LossCause::none;     ///< that of all `ranks`; none: see that of each
  std::uint64_t expected = 0;
  std::uint64_t actual = 0;
  std::uint64_t limit = 0;
  Happened happened = Happened::unsaid;  ///< set by every call that changes something
  std::string detail;                    ///< for people: what happened, and what to do

  /// One line for logs: what failed, where, which ranks, what to do. It has the details of the
  /// first 8 ranks and the numbers of the others. Programs should compare fields, not this text.
  MUSTER_API std::string message() const;
};

MUSTER_END_NAMESPACE
