#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "client/protocol/events.h"
#include "client/protocol/inbox.h"
#include "wire/frame.h"
#include "wire/hello.h"

namespace muster::client::protocol {

/// The bytes that come: of the connection that stands, cut into frames, and long replies put
/// together from their parts; and of an attempt to make one, up to its hello.
class Incoming {
 public:
  void push(std::string_view bytes) { inbox_.push(bytes); }
  /// Keeps what was not read.
  void settle() { inbox_.settle(); }
  /// The connection is over, also while what it brought is being read.
  void connection_lost();

  void push_of_attempt(std::string_view bytes) { greeting_.push(bytes); }
  void settle_attempt() { greeting_.settle(); }
  void attempt_lost();
  /// The attempt takes the place of what stood: what it has brought and was not read is read next,
  /// and settled before `settle_attempt`.
  void take_over_attempt();

  /// Of the attempt. Nothing: not all of it has come.
  /// errors  what comes is no hello of a server
  Result<std::optional<wire::ServerHello>> take_hello();
  /// Nothing: no whole frame is left. What it views is valid until `settle`.
  /// errors  as `wire::cut_frame`
  Result<std::optional<wire::Frame>> take_frame(std::uint32_t body_bytes_max);

  /// A part of a reply, which is kept if somebody waits for it.
  /// errors  protocol_error (the parts of two replies are mixed, or longer than one may be)
  Result<void> keep_part(const wire::Frame& frame, bool is_awaited, std::uint64_t bytes_max);
  /// What the parts of this reply have brought; after it there are none.
  std::string take_parts(CallId reply);

 private:
  Inbox inbox_;
  Inbox greeting_;
  CallId parts_of_ = 0;  ///< the reply whose first parts have come; 0: none
  std::string parts_;
};

/// An error of what the server says.
Error protocol_error(std::string detail);
Error too_many_parts();

}  // namespace muster::client::protocol
