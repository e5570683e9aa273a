#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "again.h"
#include "sample.h"
#include "wire/error_body.h"
#include "wire/frame.h"
#include "wire/reply.h"
#include "wire/request.h"

// What the sample lists are made with.

namespace muster::golden {

/// 00 11 22 ... ff, so that its order is visible.
ProcessId sample_process_id();
/// Host "b7", pid 4711, label "pod-3".
ProcessInfo sample_process();
/// timed_out of a barrier with every field set.
Error sample_error();

Sample request_sample(std::string name, std::string about, wire::RequestBody body);

/// A frame whose body the annotator has written apart.
Sample framed_sample(std::string name, std::string about, wire::FrameHeader header,
                     std::string_view body, const Annotator& annotated_body);

template <class Reply>
Sample reply_sample(std::string name, std::string about, const Reply& reply) {
  std::string body;
  wire::append_body(body, reply);
  Annotator annotator;
  wire::fields(annotator, reply);
  const wire::FrameHeader header{0, wire::FrameType::reply, 0, 7};
  Sample sample = framed_sample(std::move(name), std::move(about), header, body, annotator);
  sample.again = reply_again<Reply>;
  return sample;
}

}  // namespace muster::golden
