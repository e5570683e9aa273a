#include <string>

#include <doctest/doctest.h>

#include "muster/error.h"

// What each error says to do, read as somebody does who meets it first. Where that depends on what
// was refused, the detail says it, as it is here, and nothing follows.

using namespace muster;

namespace {

struct Row {
  ErrorCode code;
  const char* operation;
  const char* detail;
  const char* ending;  ///< of the message, behind the detail
};

const Row rows[] = {
    {ErrorCode::invalid_argument, "connect",
     "address 'tcp://h:1': an address has no scheme; leave out 'tcp://' (write \"host:port\", "
     "\"[ipv6]:port\" or \"unix:/path\")",
     ""},
    {ErrorCode::too_large, "create", "world_size is too large; raise the server's world_size_max",
     ""},
    {ErrorCode::not_a_number, "add", "the value of 'k' is 'x', no decimal 64-bit number",
     "; set it to a number first, or use another key"},
    {ErrorCode::out_of_range, "add", "'k' would leave the range of 64 bits",
     "; set it anew, or use another key"},
    {ErrorCode::unsupported, "connect", "the other side speaks another protocol version",
     "; update the older of the two sides"},
    {ErrorCode::busy, "connect", "the server is full: connections_max is reached",
     "; try again later, or give the server more room"},
    {ErrorCode::busy, "create",
     "this store has a handle of this group already; end that one first, or use another store", ""},
    {ErrorCode::busy, "barrier", "a collective of this handle is pending",
     "; wait until that call has ended"},
    {ErrorCode::would_deadlock, "get",
     "a blocking call from a handler on the I/O thread; use its callback form there", ""},
    {ErrorCode::would_deadlock, "all_reduce",
     "another thread issues to device 0; let one thread do it, or set "
     "NCCL_LAUNCH_ORDER_IMPLICIT=1",
     ""},
    {ErrorCode::forked, "get",
     "the store belongs to the parent process; connect another one in the child", ""},
    {ErrorCode::not_found, "get", "'k' is absent", ""},
    {ErrorCode::timed_out, "get", "'k' is absent", ""},
    {ErrorCode::cancelled, "get", "cancelled by its caller", ""},
    {ErrorCode::closed, "get", "the store was closed", ""},
    {ErrorCode::outcome_unknown, "get", "the server did not answer",
     "; it changes nothing: call it again"},
    {ErrorCode::outcome_unknown, "add", "the server did not answer",
     "; it may or may not have happened; look before repeating it"},
    {ErrorCode::outcome_unknown, "barrier", "call recover() first", ""},
    {ErrorCode::resource_exhausted, "set",
     "10 more bytes would pass the limit memory_bytes_max; remove keys, or start the server with "
     "a higher one",
     ""},
    {ErrorCode::unavailable, "connect", "Connection refused",
     "; check that the server runs at this address"},
    {ErrorCode::suspended, "get", "nothing that was sent in the last 12 s was answered",
     "; the session goes on when the connection is back"},
    {ErrorCode::session_expired, "get", "session 7 is over; begin a new one",
     "; reopen() begins a new session; form the groups anew"},
    {ErrorCode::server_restarted, "get", "the server was restarted; what the session had is lost",
     "; its state is gone; reopen() and form the groups anew"},
    {ErrorCode::fenced, "get", "declared dead: 'it was seen to crash'",
     "; it was declared dead while alive; reopen() begins anew"},
    {ErrorCode::protocol_error, "connect",
     "the other side seems to speak HTTP, not Muster's protocol",
     "; check that a Muster server listens at this address"},
    {ErrorCode::protocol_error, "all_gather", "the server's answer has 3 values where 4 are due",
     "; update the older side; of one version, please report it"},
    {ErrorCode::address_in_use, "start", "binding: Address already in use",
     "; choose another port, or end what listens there"},
    {ErrorCode::address_in_use, "create", "binding: Address already in use",
     "; choose another port, or join the group by name there"},
    {ErrorCode::permission_denied, "create",
     "an observer cannot take part in groups; connect as a client", ""},
    {ErrorCode::rank_lost, "barrier", "", "; regroup() goes on with the survivors"},
    {ErrorCode::rank_left, "barrier", "", "; regroup() goes on with the others"},
    {ErrorCode::rank_in_use, "create", "", "; end that process, or choose another rank"},
    {ErrorCode::group_mismatch, "create", "the group's world_size is 3, not 4",
     "; give every rank the same values"},
    {ErrorCode::group_closed, "create", "the group is whole",
     "; wait with standby for its next epoch, or choose another name"},
    {ErrorCode::stale_epoch, "barrier", "the group has regrouped",
     "; use the handle of the newest epoch"},
    {ErrorCode::collective_mismatch, "barrier", "",
     "; call the same collectives in the same order"},
    {ErrorCode::interrupted, "barrier", "restores group 'a'",
     "; prepare for what they do; the group itself goes on"},
    {ErrorCode::codec_mismatch, "recv_obj", "", "; use the same codec on both sides"},
    {ErrorCode::sequence_gap, "recv_obj", "",
     "; use one handle per group and rank; leave and join anew"},
    {ErrorCode::library_missing, "create",
     "libcuda cannot be loaded: no such file; install NVIDIA's driver there, or give the path of "
     "its libcuda.so.1",
     ""},
    {ErrorCode::nccl, "create", "NCCL_COMM_BLOCKING=1 is set; unset it", ""},
    {ErrorCode::mismatch, "create", "another NCCL id than that of rank 0",
     "; give every rank the same values"},
    {ErrorCode::mismatch, "attach", "another process or rank than it was made with",
     "; create the communicator anew"},
    {ErrorCode::duplicate_device, "create", "they share a device",
     "; give each rank a device of its own"},
    {ErrorCode::no_device, "create", "there is no device 3, this process sees 2",
     "; see nvidia-smi and CUDA_VISIBLE_DEVICES there"},
    {ErrorCode::aborted, "all_reduce", "by its host", "; create another communicator"},
    {ErrorCode::gloo, "create", "Gloo: connection closed by peer", ""},
    {ErrorCode::environment, "Environment::validate",
     "RANK=2 contradicts WORLD_SIZE=2: a rank is below its size", ""},
    {ErrorCode::not_initialized, "Runtime::subgroup", "call Runtime::init first", ""},
    {ErrorCode::callback_failed, "on_rank_zero", "no such file", ""},
    {ErrorCode::way_missing, "all_reduce_tensor",
     "rank 0 refuses: the group has no communicator 'cpu:gloo'", ""},
    {ErrorCode::internal, "get", "", "; a defect of Muster; please report it"},
};

}  // namespace

TEST_CASE("what to do is said once, and holds for the call and its error") {
  for (const Row& row : rows) {
    Error error;
    error.code = row.code;
    error.operation = row.operation;
    error.detail = row.detail;
    const std::string told = row.detail + std::string(row.ending);
    const std::string name(name_of(row.code));
    const bool is_bare = *row.detail == '\0';
    CHECK(error.message() ==
          name + ": " + row.operation + ": " + (is_bare ? told.substr(2) : told));
  }
}
