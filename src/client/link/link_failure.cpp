// When memory is out in the midst of a turn or of a call, nobody knows what was done and what was
// not. So what the link holds is thrown away: the session ends here and, as after any lost
// connection, at the server; every call ends, and `establish` begins anew.

#include <new>
#include <string>

#include "base/monotonic_now.h"
#include "client/failure.h"
#include "client/link/link.h"

namespace muster::client {
namespace {

/// Its code alone where there is no memory for the texts.
Error copy_of(const Error& error) noexcept {
  try {
    return error;
  } catch (const std::bad_alloc&) {
    Error bare;
    bare.code = error.code;
    return bare;
  }
}

}  // namespace

void Link::break_down() noexcept {
  is_broken_ = true;
  loop_.bell().ring();
}

void Link::fail(std::string_view why) {
  const std::string line = "the session was given up: " + std::string(why) +
                           "; free memory, then reopen the store and form the groups again";
  const Error ended = failure(ErrorCode::resource_exhausted, line);
  PendingCalls pending;
  std::vector<Establishing> establishing;
  {
    const std::lock_guard lock(mutex_);
    direct_fd_ = -1;
    leftover_.clear();
    armed_for_ = base::far_future;
    if (!is_finished_) protocol_ = std::make_unique<protocol::Protocol>(*protocol_, ended);
    is_broken_ = false;
    if (is_finished_) return;
    if (is_closing_) protocol_->close(base::monotonic_now());
    pending.swap(pending_);
    establishing.swap(establishing_);
    give_up_at_ = base::far_future;
  }
  is_in_turn_ = false;
  if (connector_) connector_->cancel();
  if (connection_) connection_->close();
  connection_.reset();
  close_set_aside();
  timer_.cancel();
  wake();
  handlers_.log(LogLevel::error, line);
  Error in_doubt = failure(ErrorCode::outcome_unknown, line);
  for (auto& [id, call] : pending) {
    complete(call.ticket, {copy_of(in_doubt), protocol::Fate::in_doubt});
  }
  for (Establishing& waiting : establishing) waiting.done(Result<void>(copy_of(ended)));
  protocol::Notify end{{wire::EventKind::session_ended, 0, ended}};
  execute(end);
}

}  // namespace muster::client
