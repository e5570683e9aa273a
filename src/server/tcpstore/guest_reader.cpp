#include "server/tcpstore/guest_reader.h"

#include <utility>

#include "server/peer/peer.h"
#include "server/tcpstore/peer_replies.h"

namespace muster::server::tcpstore {

Result<GuestReader::Read> GuestReader::read(Peer& peer, bool has_waited) {
  using StepKind = Conversation::Step::Kind;
  Guest& guest = *peer.guest;
  const auto read = guest.requests.next(request_);
  if (!read) return read.error();
  if (*read == 0) return Read::nothing;
  if (is_for_nobody(peer)) {
    work_.spend(peer, 1);
    return Read::handled;
  }
  const std::uint64_t before = driver_.work();
  PeerReplies out(peer, sender_);
  for (;;) {
    const auto asked = guest.conversation.next(request_, step_, out);
    if (!asked) return asked.error();
    if (step_.kind == StepKind::done) {
      if (driver_.work() == before) work_.spend(peer, 1);  // the engine was asked for nothing
      return Read::handled;
    }
    carry_out(peer, std::exchange(has_waited, false));
    if (peer.is_gone) return Read::handled;
    if (step_.kind == StepKind::abandon) continue;
    if (driver_.postponed_bytes() != 0) return Read::postponed;
    if (!guest.conversation.is_answered()) guest.conversation.waits();
    if (guest.conversation.is_long() && !work_.may_work(peer)) return Read::unfinished;
  }
}

void GuestReader::carry_out(Peer& peer, bool has_waited) {
  using StepKind = Conversation::Step::Kind;
  const std::uint64_t before = driver_.work();
  if (step_.kind == StepKind::abandon) {
    driver_.apply(core::Abandoned{peer.id, &step_.abandoned});
  } else if (step_.kind == StepKind::own) {
    driver_.apply(core::Requested{peer.id, &step_.request, peer.intake->memory_of_last(),
                                  holdings_.unsent(peer, has_waited)});
  } else {
    driver_.apply(core::RequestedByGuest{peer.id, step_.request.id, &step_.guest_request,
                                         holdings_.unsent(peer, has_waited)});
  }
  work_.spend(peer, driver_.work() - before);
}

/// What a client that is gone has asked for. A list of all keys is asked for by a byte, so that an
/// hour's work may be left of one. A list that was begun is gone on with.
bool GuestReader::is_for_nobody(const Peer& peer) const {
  return peer.end != nullptr && only_asks(request_.command) && !peer.guest->conversation.is_long();
}

}  // namespace muster::server::tcpstore
