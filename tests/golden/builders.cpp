#include "builders.h"

namespace muster::golden {
namespace {

std::string_view name_of(wire::FrameType type) {
  switch (type) {
    case wire::FrameType::request: return "request";
    case wire::FrameType::reply: return "reply";
    case wire::FrameType::acknowledge: return "acknowledge";
    case wire::FrameType::abandon: return "abandon";
    case wire::FrameType::heartbeat: return "heartbeat";
    case wire::FrameType::heartbeat_reply: return "heartbeat_reply";
    case wire::FrameType::part: return "part";
    case wire::FrameType::event: return "event";
    case wire::FrameType::goodbye: return "goodbye";
    case wire::FrameType::echo: return "echo";
  }
  return "";
}

std::string_view name_of(wire::EventKind kind) {
  switch (kind) {
    case wire::EventKind::epoch_broken: return "epoch_broken";
    case wire::EventKind::rank_left: return "rank_left";
    case wire::EventKind::session_ended: return "session_ended";
    case wire::EventKind::interrupted: return "interrupted";
  }
  return "";
}

std::string_view meaning_of_code(const wire::FrameHeader& header) {
  switch (header.type) {
    case wire::FrameType::request: return wire::name_of(static_cast<wire::Operation>(header.code));
    case wire::FrameType::event: return name_of(static_cast<wire::EventKind>(header.code));
    case wire::FrameType::reply:
      if (header.code == 0) return "ok";
      return muster::name_of(static_cast<ErrorCode>(header.code));
    default: return "";
  }
}

Annotator annotated_frame(const wire::FrameHeader& header, std::size_t body_bytes) {
  Annotator frame;
  frame.number("header.body_bytes", body_bytes, 4);
  frame.number("header.type", static_cast<std::uint64_t>(header.type), 1, name_of(header.type));
  frame.number("header.flags", 0, 1);
  frame.number("header.code", header.code, 2, meaning_of_code(header));
  frame.number("header.id", header.id, 8);
  return frame;
}

}  // namespace

ProcessId sample_process_id() {
  ProcessId id;
  for (std::size_t index = 0; index < id.bytes.size(); ++index) {
    id.bytes[index] = static_cast<std::uint8_t>(0x11 * index);
  }
  return id;
}

ProcessInfo sample_process() {
  ProcessInfo process;
  process.id = sample_process_id();
  process.host = "b7";
  process.pid = 4711;
  process.label = "pod-3";
  return process;
}

Error sample_error() {
  Error error;
  error.code = ErrorCode::timed_out;
  error.operation = "barrier";
  error.group = "tp0";
  error.epoch = 7;
  error.round = 12;
  error.elapsed = std::chrono::milliseconds(5010);
  error.decided_by = "rank 0";
  error.decided_by_rank = 0;
  error.decided_by_timeout = std::chrono::seconds(5);
  error.where = "10.0.0.1:4600";
  RankReport silent;
  silent.rank = 3;
  silent.joined = true;
  silent.process = sample_process();
  silent.silence = std::chrono::milliseconds(6200);
  silent.called = "broadcast";
  RankReport absent;
  absent.rank = 9;
  error.ranks = {silent, absent};
  error.rank_ranges = {{3, 3}, {9, 12}};
  error.cause = LossCause::heartbeat;
  error.expected = 16;
  error.actual = 11;
  error.limit = 64;
  error.detail = "five ranks did not come";
  return error;
}

Sample framed_sample(std::string name, std::string about, wire::FrameHeader header,
                     std::string_view body, const Annotator& annotated_body) {
  Sample sample;
  sample.name = std::move(name);
  sample.about = std::move(about);
  wire::append_frame(sample.bytes, header, body);
  sample.annotated = annotated_frame(header, annotated_body.bytes().size());
  sample.annotated.append(annotated_body);
  return sample;
}

Sample request_sample(std::string name, std::string about, wire::RequestBody body) {
  wire::Request request;
  request.id = 7;
  request.timeout = std::chrono::seconds(5);
  request.acknowledged = {5, 6};
  request.body = std::move(body);

  Annotator annotator;
  annotator.duration("timeout_us", request.timeout, 8);
  annotator.note("acknowledged", request.acknowledged);
  std::visit([&](const auto& fields_of) { wire::fields(annotator, fields_of); }, request.body);

  const wire::FrameHeader header{0, wire::FrameType::request,
                                 static_cast<std::uint16_t>(wire::operation_of(request.body)), 7};
  Sample sample = framed_sample(std::move(name), std::move(about), header, {}, annotator);
  sample.bytes.clear();
  wire::append_request(sample.bytes, request);
  sample.again = request_again;
  return sample;
}

}  // namespace muster::golden
