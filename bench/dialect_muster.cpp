#include "dialect_muster.h"

#include <charconv>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "wire/error_body.h"
#include "wire/reply.h"

namespace muster::bench {
namespace {

constexpr std::size_t type_at = 4;
constexpr std::size_t code_at = 6;
constexpr std::size_t id_at = 8;

template <class Number>
Number number_at(std::string_view bytes, std::size_t position) {
  Number number;
  std::memcpy(&number, bytes.data() + position, sizeof(number));
  return number;
}

std::int64_t count_of_keys(std::string_view body) {
  const auto status = wire::decode_body<wire::StatusReply>(body);
  if (!status) return -1;
  for (const auto& [name, value] : status->fields) {
    std::int64_t count = -1;
    if (name != "keys_count") continue;
    std::from_chars(value.data(), value.data() + value.size(), count);
    return count;
  }
  return -1;
}

}  // namespace

std::string MusterDialect::greeting() const {
  wire::ClientHello client;
  client.process.pid = 1;
  client.process.host = "bench";
  if (resumes_) {
    client.incarnation = session_.incarnation;
    client.session_id = session_.id;
    client.token = session_.token;
  }
  std::string bytes;
  wire::append_client_hello(bytes, client);
  return bytes;
}

std::size_t MusterDialect::greeting_reply_bytes() const { return wire::server_hello_bytes; }

void MusterDialect::greeted(std::string_view bytes) {
  hello_ += bytes;
  if (!resumes_ || hello_.size() < wire::server_hello_bytes) return;
  const auto hello = wire::decode_server_hello(hello_);
  if (!hello) throw std::runtime_error(hello.error().message());
  if (!hello->resumed) throw std::runtime_error("a session has not come back: " + hello->detail);
  hello_ = {};
}

void MusterDialect::begin_again() {
  if (session_.id == 0) throw std::runtime_error("this session has not begun");
  resumes_ = true;
}

void MusterDialect::append_echo_once(std::string& out) {
  if (hello_.empty()) return;
  const auto hello = wire::decode_server_hello(hello_);
  if (!hello) throw std::runtime_error(hello.error().message());
  wire::append_echo(out, hello->token);
  session_ = {hello->incarnation, hello->session_id, hello->token};
  hello_ = {};
}

void MusterDialect::append_request(std::string& out, wire::RequestBody body, Duration timeout) {
  append_echo_once(out);
  wire::Request request;
  request.id = ++last_id_;
  is_kept_[request.id % in_flight_max] = wire::is_kept(wire::operation_of(body));
  request.timeout = timeout;
  request.acknowledged.swap(unacknowledged_);
  request.body = std::move(body);
  wire::append_request(out, request);
  request.acknowledged.clear();
  unacknowledged_.swap(request.acknowledged);  // keeps its room
}

void MusterDialect::append_acknowledgement(std::string& out) {
  wire::append_ids(out, wire::FrameType::acknowledge, 0, unacknowledged_);
  unacknowledged_.clear();
}

void MusterDialect::append_heartbeat(std::string& out) {
  append_echo_once(out);
  wire::append_ids(out, wire::FrameType::heartbeat, 1, unacknowledged_);
  unacknowledged_.clear();
}

bool MusterDialect::append_set(std::string& out, std::string_view key, std::string_view value,
                               std::int64_t time_to_live_ms) {
  wire::Set set;
  set.key = key;
  set.value = value;
  if (time_to_live_ms > 0) set.ttl = std::chrono::milliseconds(time_to_live_ms);
  append_request(out, set);
  return true;
}

bool MusterDialect::append_get(std::string& out, std::string_view key, std::size_t) {
  append_request(out, wire::Get{key}, Duration(0));
  return true;
}

bool MusterDialect::append_add(std::string& out, std::string_view key) {
  append_request(out, wire::Add{key, 1});
  return true;
}

bool MusterDialect::append_multi_get(std::string& out, int count, std::size_t) {
  static std::vector<std::string> names;
  while (names.size() < static_cast<std::size_t>(count)) {
    names.push_back(nth_key(static_cast<std::int64_t>(names.size())));
  }
  wire::MultiGet multi_get;
  multi_get.keys.assign(names.begin(), names.begin() + count);
  append_request(out, std::move(multi_get));
  return true;
}

bool MusterDialect::append_wait(std::string& out, std::string_view key, std::size_t) {
  append_request(out, wire::Get{key});
  return true;
}

bool MusterDialect::append_wake(std::string& out, std::string_view key, std::string_view value) {
  return append_set(out, key, value, 0);
}

bool MusterDialect::append_count(std::string& out) {
  keep_replies(true);
  append_request(out, wire::Status{});
  id_of_count_ = last_id_;
  return true;
}

void MusterDialect::append_goodbye(std::string& out) {
  append_echo_once(out);
  wire::append_goodbye(out, "measured");
}

Dialect::Piece MusterDialect::piece_of(std::string_view begin) {
  if (begin.size() < wire::frame_header_bytes) return {};
  Piece piece;
  piece.bytes = wire::frame_header_bytes + number_at<std::uint32_t>(begin, 0);
  const auto type = static_cast<wire::FrameType>(begin[type_at]);
  piece.ends_reply = type == wire::FrameType::reply || type == wire::FrameType::heartbeat_reply;
  if (type == wire::FrameType::reply) {
    const bool is_error = number_at<std::uint16_t>(begin, code_at) != 0;
    piece.is_wanted = keeps_replies_ || is_error;
    const auto id = number_at<std::uint64_t>(begin, id_at);
    // A piece of which more is wanted comes here again.
    if (std::exchange(is_kept_[id % in_flight_max], false)) unacknowledged_.push_back(id);
  } else if (type == wire::FrameType::goodbye || type == wire::FrameType::event) {
    piece.is_wanted = true;
  }
  return piece;
}

void MusterDialect::whole(std::string_view piece) {
  const std::string_view body = piece.substr(wire::frame_header_bytes);
  const auto type = static_cast<wire::FrameType>(piece[type_at]);
  const auto code = number_at<std::uint16_t>(piece, code_at);
  if (type == wire::FrameType::goodbye) throw std::runtime_error("musterd says goodbye");
  if (type == wire::FrameType::event) {
    if (code != static_cast<std::uint16_t>(wire::EventKind::session_ended)) return;
    throw std::runtime_error("musterd ends the session");
  }
  if (code != 0) {
    const auto error = wire::decode_error(code, body);
    throw std::runtime_error(error ? error->message() : "an error that cannot be read");
  }
  reply_ = body;
  if (number_at<std::uint64_t>(piece, id_at) == id_of_count_) set_number(count_of_keys(body));
}

}  // namespace muster::bench
