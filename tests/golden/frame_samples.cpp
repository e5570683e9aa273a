#include "builders.h"

namespace muster::golden {
namespace {

Sample ids_sample(std::string name, std::string about, wire::FrameType type, std::uint64_t id,
                  const std::vector<std::uint64_t>& ids) {
  Annotator annotator;
  annotator.note("request_ids", ids);
  Sample sample = framed_sample(std::move(name), std::move(about), {0, type, 0, id}, {}, annotator);
  sample.bytes.clear();
  wire::append_ids(sample.bytes, type, id, ids);
  sample.again = ids_again;
  return sample;
}

Sample goodbye_sample() {
  Annotator annotator;
  annotator.note("reason", std::string_view("the server stops"));
  Sample sample = framed_sample("frame_goodbye", "Either side: the end, in order, and why.",
                                {0, wire::FrameType::goodbye, 0, 0}, {}, annotator);
  sample.bytes.clear();
  wire::append_goodbye(sample.bytes, "the server stops");
  sample.again = goodbye_again;
  return sample;
}

Sample echo_sample() {
  wire::ResumeToken token;
  for (std::size_t index = 0; index < token.bytes.size(); ++index) {
    token.bytes[index] = static_cast<std::uint8_t>(0xa0 + index);
  }
  Annotator annotator;
  annotator.raw("token", {reinterpret_cast<const char*>(token.bytes.data()), token.bytes.size()});
  Sample sample = framed_sample("frame_echo", "Client: the token of its new session, once.",
                                {0, wire::FrameType::echo, 0, 0}, {}, annotator);
  sample.bytes.clear();
  wire::append_echo(sample.bytes, token);
  sample.again = echo_again;
  return sample;
}

/// A frame whose body, if it has one, is any bytes.
Sample plain_sample(std::string name, std::string about, wire::FrameHeader header,
                    std::string_view body) {
  Annotator annotator;
  if (!body.empty()) annotator.raw("bytes", body);
  Sample sample = framed_sample(std::move(name), std::move(about), header, body, annotator);
  sample.cut_may_decode = true;
  sample.again = plain_again;
  return sample;
}

Sample error_sample(std::string name, std::string about, const Error& error) {
  std::string body;
  wire::append_error(body, error);
  Annotator annotator;
  annotator.error_fields(error);
  Sample sample = framed_sample(
      std::move(name), std::move(about),
      {0, wire::FrameType::reply, static_cast<std::uint16_t>(error.code), 7}, body, annotator);
  sample.cut_may_decode = true;
  sample.again = error_again;
  return sample;
}

Sample event_sample(std::string name, std::string about, const wire::Event& event) {
  std::string body;
  wire::append_event(body, event);
  Annotator annotator;
  annotator.note("epoch", event.epoch);
  annotator.number("code", static_cast<std::uint64_t>(event.error.code), 2,
                   muster::name_of(event.error.code));
  annotator.error_fields(event.error);
  if (event.ends_session) annotator.ends_session(*event.ends_session);
  Sample sample = framed_sample(
      std::move(name), std::move(about),
      {0, wire::FrameType::event, static_cast<std::uint16_t>(event.kind), 0}, body, annotator);
  sample.cut_may_decode = true;
  sample.again = event_again;
  return sample;
}

}  // namespace

std::vector<Sample> frame_samples() {
  return {
      ids_sample("frame_acknowledge", "Client: these replies were received and used.",
                 wire::FrameType::acknowledge, 0, {5, 6}),
      ids_sample("frame_abandon", "Client: these replies are no longer wanted.",
                 wire::FrameType::abandon, 0, {8}),
      ids_sample("frame_heartbeat", "Client: it lives, and these replies were used meanwhile.",
                 wire::FrameType::heartbeat, 42, {5}),
      plain_sample("frame_heartbeat_reply", "Server: the number of the heartbeat back.",
                   {0, wire::FrameType::heartbeat_reply, 0, 42}, {}),
      plain_sample("frame_part", "Server: bytes of the reply to request 7, before its own frame.",
                   {0, wire::FrameType::part, 0, 7}, "of a long value"),
      goodbye_sample(),
      echo_sample(),
  };
}

std::vector<Sample> error_samples() {
  Error not_found;
  not_found.code = ErrorCode::not_found;

  RankReport cut_off{1, true, sample_process(), std::chrono::seconds(15), "", LossCause::heartbeat};
  RankReport killed{2, true, sample_process(), std::chrono::seconds(2), "", LossCause::closed};
  Error rank_lost;
  rank_lost.code = ErrorCode::rank_lost;
  rank_lost.ranks = {cut_off, killed};
  rank_lost.rank_ranges = {{1, 2}};

  wire::Event broken;
  broken.kind = wire::EventKind::epoch_broken;
  broken.epoch = 7;
  broken.error.code = ErrorCode::rank_lost;
  broken.error.group = "tp0";
  broken.error.rank_ranges = {{3, 3}};
  broken.error.cause = LossCause::closed;

  wire::Event left;
  left.kind = wire::EventKind::rank_left;
  left.epoch = 7;
  left.error.code = ErrorCode::rank_left;
  left.error.rank_ranges = {{1, 1}};

  wire::Event interrupted;
  interrupted.kind = wire::EventKind::interrupted;
  interrupted.epoch = 7;
  interrupted.error.code = ErrorCode::interrupted;
  interrupted.error.round = 12;
  interrupted.error.rank_ranges = {{2, 2}};
  interrupted.error.detail = "restores group 'a'";

  wire::Event ended;
  ended.kind = wire::EventKind::session_ended;
  ended.error.code = ErrorCode::fenced;
  ended.error.decided_by = "the supervisor on b1";

  wire::Event connection_closed;
  connection_closed.kind = wire::EventKind::session_ended;
  connection_closed.error.code = ErrorCode::protocol_error;
  connection_closed.error.decided_by = "server";
  connection_closed.ends_session = false;
  wire::Event session_over = connection_closed;
  session_over.error.code = ErrorCode::permission_denied;
  session_over.ends_session = true;
  return {
      error_sample("error_timed_out",
                   "A reply that is an error, with every field but the causes of ranks.",
                   sample_error()),
      error_sample("error_rank_lost", "Two ranks are lost, each of a cause of its own.", rank_lost),
      error_sample("error_not_found", "A reply that is an error without fields.", not_found),
      event_sample("event_epoch_broken", "A rank is lost and its epoch with it.", broken),
      event_sample("event_rank_left", "A rank has left its epoch.", left),
      event_sample("event_interrupted", "A rank has interrupted its group.", interrupted),
      event_sample("event_session_ended", "The session is over, as older servers say it.", ended),
      event_sample("event_session_over", "The session is over.", session_over),
      event_sample("event_connection_closed", "Only the connection is over.", connection_closed),
  };
}

}  // namespace muster::golden
