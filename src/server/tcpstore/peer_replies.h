#pragma once

#include <utility>

#include "server/peer/peer.h"
#include "server/send_scheduler.h"
#include "server/tcpstore/conversation.h"

namespace muster::server::tcpstore {

/// The bytes for a client go to its peer's outbox.
class PeerReplies final : public ReplySink {
 public:
  PeerReplies(Peer& peer, SendScheduler& sender) : peer_(peer), sender_(sender) {}

  void send(std::string_view bytes) override {
    peer_.outbox.send_bare(bytes);
    sender_.mark_dirty(peer_, bytes.size());
  }
  void send(core::Payload value, std::size_t skipped, bool is_for_one) override {
    const std::string_view bytes = value->view().substr(skipped);
    peer_.outbox.send_bare(net::SharedBytes{bytes, std::move(value), is_for_one});
    sender_.mark_dirty(peer_, Outbox::reply_bytes);
  }

 private:
  Peer& peer_;
  SendScheduler& sender_;
};

}  // namespace muster::server::tcpstore
