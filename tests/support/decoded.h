#pragma once

#include <utility>
#include <vector>

#include "wire/request.h"

namespace muster::test {

/// What a request frame says, as a value of its own.
inline Result<wire::Request> decoded_request(const wire::Frame& frame) {
  wire::Request request;
  Result<void> read = wire::decode_request(frame, request);
  if (!read) return std::move(read).error();
  return request;
}

/// The request ids that a frame carries.
inline Result<std::vector<std::uint64_t>> decoded_ids(const wire::Frame& frame) {
  std::vector<std::uint64_t> request_ids;
  Result<void> read = wire::decode_ids(frame, request_ids);
  if (!read) return std::move(read).error();
  return request_ids;
}

}  // namespace muster::test
