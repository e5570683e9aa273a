#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "muster/result.h"
#include "server/peer/intake.h"
#include "wire/frame.h"

namespace muster::server {

struct FrameLimits {
  std::uint32_t body_bytes_max = 0;
  /// Of what goes on when memory is out.
  std::uint32_t essential_bytes_max = 0;
};

/// Puts the frames of one peer together from the pieces in which its bytes arrive.
///
/// A frame that lies within one piece is handed on where it lies. Of others the bytes are stored
/// as they come; a declared length alone takes no memory. A long frame may be read to where it is
/// stored, and taken over from there.
class FrameAssembler : public Intake {
 public:
  /// The next frame needs bytes that have not come.
  struct Incomplete {};
  /// There is no memory for a request: its bytes are dropped as they come.
  struct Unstorable {
    wire::FrameHeader header;
    std::vector<std::uint64_t> acknowledged;  ///< by the request
    Error why;
  };
  using Next = std::variant<Incomplete, wire::Frame, Unstorable>;

  FrameAssembler(core::Quota& quota, const FrameLimits& limits) : Intake(quota), limits_(limits) {}

  /// The next frame, valid until the next call.
  ///
  /// errors  too_large, protocol_error, resource_exhausted: there is no next frame, ever
  Result<Next> next();

  /// Where the next bytes are best put, to be given from there: of a long frame, of which much is
  /// still to come, behind what has come. Empty: anywhere else. Valid until anything else is
  /// called.
  std::span<char> room();

  /// Whether no frame has come whole: `next` only stores what was given, or refuses it.
  bool has_part_only() const;

 private:
  Result<Next> next_stored();
  Error too_long(const wire::FrameHeader& header) const;
  Error no_room(const wire::FrameHeader& header) const;
  Unstorable skip_request(const wire::FrameHeader& header);

  const FrameLimits limits_;
};

}  // namespace muster::server
