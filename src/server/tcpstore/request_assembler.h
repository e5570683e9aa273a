#pragma once

#include <cstddef>
#include <span>

#include "muster/result.h"
#include "server/peer/intake.h"
#include "server/tcpstore/request.h"

namespace muster::server::tcpstore {

/// Puts the requests of one client of TCPStore's together from the pieces in which its bytes
/// arrive: what FrameAssembler is for clients of Muster.
class RequestAssembler : public Intake {
 public:
  RequestAssembler(core::Quota& quota, Dialect fallback, const RequestLimits& limits)
      : Intake(quota), reader_(fallback, limits) {}

  /// The next request, if it has come as a whole. Its views are valid until the next call.
  ///
  /// returns  how many bytes it has; 0: more have to come
  /// errors  as RequestReader::read, and resource_exhausted (there is no memory for it): there is
  ///         no next request, ever
  Result<std::size_t> next(Request& into);

  /// Where the next bytes are best put; see FrameAssembler.
  std::span<char> room();

  /// Whether certainly no request has come as a whole.
  bool has_part_only() const;

 private:
  Result<std::size_t> next_stored(Request& into);

  RequestReader reader_;
};

}  // namespace muster::server::tcpstore
