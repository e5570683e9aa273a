#include "client/protocol/incoming.h"

#include <utility>

namespace muster::client::protocol {

Error protocol_error(std::string detail) {
  Error error;
  error.code = ErrorCode::protocol_error;
  error.detail = std::move(detail);
  return error;
}

Error too_many_parts() { return protocol_error("the parts of a reply are longer than is allowed"); }

void Incoming::connection_lost() {
  inbox_.drop_rest();
  inbox_.settle();
  parts_of_ = 0;
  std::string().swap(parts_);
}

void Incoming::attempt_lost() {
  greeting_.drop_rest();
  greeting_.settle();
}

void Incoming::take_over_attempt() {
  inbox_.push(greeting_.rest());
  greeting_.drop_rest();
}

Result<std::optional<wire::ServerHello>> Incoming::take_hello() {
  const std::string_view bytes = greeting_.rest();
  if (Result<void> start = wire::check_magic(bytes); !start) return std::move(start).error();
  if (bytes.size() < wire::server_hello_bytes) return std::optional<wire::ServerHello>();
  auto hello = wire::decode_server_hello(bytes.substr(0, wire::server_hello_bytes));
  if (!hello) return std::move(hello).error();
  greeting_.consume(wire::server_hello_bytes);
  return std::optional(*std::move(hello));
}

Result<std::optional<wire::Frame>> Incoming::take_frame(std::uint32_t body_bytes_max) {
  auto frame = wire::cut_frame(inbox_.rest(), body_bytes_max);
  if (frame.has_value() && *frame) inbox_.consume(wire::frame_header_bytes + (*frame)->body.size());
  return frame;
}

Result<void> Incoming::keep_part(const wire::Frame& frame, bool is_awaited,
                                 std::uint64_t bytes_max) {
  const std::uint64_t id = frame.header.id;
  if (parts_of_ != 0 && parts_of_ != id) {
    return protocol_error("the parts of two replies are mixed");
  }
  parts_of_ = id;
  if (!is_awaited) {
    std::string().swap(parts_);  // it has been given up
    return {};
  }
  if (parts_.size() + frame.body.size() > bytes_max) return too_many_parts();
  parts_.append(frame.body);
  return {};
}

std::string Incoming::take_parts(CallId reply) {
  if (parts_of_ != reply) return {};
  parts_of_ = 0;
  return std::exchange(parts_, {});
}

}  // namespace muster::client::protocol
