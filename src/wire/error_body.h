#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "muster/error.h"
#include "muster/result.h"
#include "wire/operation.h"

// An Error as a list of tagged fields, so that old clients skip what newer servers add:
//    [u8 tag, u32 length, bytes]*     tags in docs/protocol.md "error"

namespace muster::wire {

/// The most ranks an error tells of in full; the ranges name all.
inline constexpr std::size_t ranks_in_full_max = 64;

void append_error(std::string& out, const Error& error);

/// `code` comes from the frame's header. An unknown code or cause stays as the number it is.
/// returns  nothing when the bytes are no error, which is a protocol_error of the other side
std::optional<Error> decode_error(std::uint16_t code, std::string_view body);

/// The body of an event frame: u64 epoch, u16 code, error. An unknown kind stays as the number it
/// is; the client ignores such events.
struct Event {
  EventKind kind = EventKind::epoch_broken;
  std::uint64_t epoch = 0;
  Error error;
  /// Of session_ended: whether the session is over, or only its connection. None: older servers do
  /// not say.
  std::optional<bool> ends_session{};
};
void append_event(std::string& out, const Event& event);
Result<Event> decode_event(std::uint16_t kind, std::string_view body);

}  // namespace muster::wire
