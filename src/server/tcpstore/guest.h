#pragma once

#include "server/tcpstore/conversation.h"
#include "server/tcpstore/request_assembler.h"

namespace muster::server::tcpstore {

/// What a peer has that is a client of TCPStore's.
struct Guest {
  Guest(core::Quota& quota, Dialect fallback, const RequestLimits& limits)
      : requests(quota, fallback, limits) {}

  RequestAssembler requests;
  Conversation conversation;
};

}  // namespace muster::server::tcpstore
