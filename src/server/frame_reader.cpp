#include "server/frame_reader.h"

#include <utility>

#include "core/session/failure.h"
#include "wire/error_body.h"

namespace muster::server {
void FrameReader::received(Peer& peer, std::string_view bytes) {
  work_.spend_bytes(peer, bytes.size());
  peer.intake->give(bytes);
  if (!cut_frames(peer)) driver_.apply(core::Heard{peer.id});
}

void FrameReader::received_behind_hello(Peer& peer, std::string_view bytes) {
  peer.intake->give(bytes);
  cut_frames(peer);
}

/// Any frame may end the connection that it came on.
///
/// returns  whether there was one
bool FrameReader::cut_frames(Peer& peer) {
  const std::uint64_t before_bytes = peer.outbox.waiting_bytes();
  bool any = false;
  for (; !peer.is_gone; any = true) {
    if (sender_.is_behind(peer)) {
      hold(peer, before_bytes);
      break;
    }
    if (!peer.intake->empty() && !work_.may_work(peer) && !has_part_only(peer)) {
      wait_for_turn(peer);
      break;
    }
    const Cut cut = peer.guest == nullptr ? cut_frame(peer) : cut_request(peer);
    if (cut == Cut::handled) continue;
    if (cut == Cut::postponed) postpone(peer, driver_.postponed_bytes());
    break;
  }
  if (!peer.is_gone && (peer.intake->stored_bytes() | peer.memory.stored_bytes) != 0) {
    holdings_.weigh(peer);
  }
  return any;
}

FrameReader::Cut FrameReader::cut_frame(Peer& peer) {
  Result<FrameAssembler::Next> next = peer.frames.next();
  if (!next) {
    break_off(peer, next.error());
  } else if (std::holds_alternative<FrameAssembler::Incomplete>(*next)) {
    peer.connection->read_into(peer.frames.room());
    return Cut::nothing;
  } else {
    handle_in_turn(peer, *next);
    if (driver_.postponed_bytes() != 0 && !peer.is_gone) return Cut::postponed;
  }
  return Cut::handled;
}

/// The same with a guest.
FrameReader::Cut FrameReader::cut_request(Peer& peer) {
  using Read = tcpstore::GuestReader::Read;
  const Result<Read> read = guests_.read(peer, std::exchange(was_postponed_, false));
  if (!read) {
    break_off(peer, read.error());
    return Cut::handled;
  }
  if (*read == Read::postponed) return Cut::postponed;
  if (*read == Read::handled) return Cut::handled;
  if (*read == Read::nothing) {
    peer.connection->read_into(peer.guest->requests.room());
  } else {
    peer.intake->put_back();
    wait_for_turn(peer);
  }
  return Cut::nothing;
}

bool FrameReader::has_part_only(const Peer& peer) {
  return peer.guest == nullptr ? peer.frames.has_part_only() : peer.guest->requests.has_part_only();
}

void FrameReader::postpone(Peer& peer, std::uint64_t bytes) {
  peer.intake->put_back();
  peer.intake->keep();
  holdings_.postpone(peer, bytes, driver_.now());
  peer.connection->read_into({});
  peer.connection->pause_reading();
  driver_.make_room_for(peer);
}

std::size_t FrameReader::readable_bytes(Peer& peer) {
  const std::size_t of_turn = work_.readable_bytes(peer);
  if (of_turn == 0) return 0;
  const std::size_t bytes = holdings_.readable_bytes(peer, of_turn);
  if (bytes == 0 && !peer.is_held) holdings_.postpone_reading(peer, driver_.now());
  return bytes;
}

bool FrameReader::may_continue_postponed() const {
  const Peer* const first = holdings_.first_postponed();
  return first != nullptr && holdings_.has_room_for(*first);
}

/// Those who have to wait once more stand behind the others.
void FrameReader::continue_postponed() {
  for (std::uint64_t count = holdings_.postponed_count(); count > 0; --count) {
    Peer* const first = holdings_.first_postponed();
    if (first == nullptr) return;
    driver_.make_room_for(*first);
    if (first->is_gone) continue;
    if (!holdings_.has_room_for(*first)) return;
    was_postponed_ = first->postponed.bytes != 0;
    holdings_.postpone_no_more(*first);
    first->connection->resume_reading();
    handle_stored(*first);
    was_postponed_ = false;
  }
}

void FrameReader::handle_in_turn(Peer& peer, const FrameAssembler::Next& next) {
  const std::uint64_t before = driver_.work();
  if (const auto* frame = std::get_if<wire::Frame>(&next)) {
    handle(peer, *frame, peer.frames.memory_of_last());
  } else {
    handle_unstorable(peer, std::get<FrameAssembler::Unstorable>(next));
  }
  work_.spend(peer, driver_.work() - before);
}

void FrameReader::wait_for_turn(Peer& peer) {
  work_.wait(peer);
  peer.connection->read_into({});
  peer.intake->keep();
  peer.connection->pause_reading();
}

bool FrameReader::take_turn(Peer& peer) {
  handle_stored(peer);
  return !peer.is_gone && !peer.is_held && !peer.work.in_unit.linked() &&
         !peer.postponed.link.linked();
}

void FrameReader::hold(Peer& peer, std::uint64_t before_bytes) {
  sender_.hold(peer, before_bytes);
  peer.connection->read_into({});
  peer.intake->keep();
  if (!limits_.reads_held(peer.intake->stored_bytes())) peer.connection->pause_reading();
}

void FrameReader::drained(Peer& peer) {
  if (peer.is_held) {
    driver_.apply(core::Heard{peer.id});  // it takes bytes: it lives, although it may not be read
    if (peer.is_gone) return;
  }
  go_on(peer);
}

void FrameReader::go_on(Peer& peer) {
  sender_.look_at_unsent(peer);
  sender_.mark_dirty(peer);
  if (!peer.is_held || sender_.is_behind(peer)) return;
  sender_.release(peer);
  peer.connection->resume_reading();
  handle_stored(peer);
}

void FrameReader::handle_stored(Peer& peer) {
  peer.intake->give({});
  cut_frames(peer);
}

void FrameReader::handle(Peer& peer, const wire::Frame& frame, core::ChargedMemory* memory) {
  const wire::FrameType type = frame.header.type;
  if (type == wire::FrameType::request) return handle_request(peer, frame, memory);
  if (type == wire::FrameType::goodbye) return driver_.apply(core::Goodbye{peer.id});
  if (type == wire::FrameType::echo) return handle_echo(peer, frame);
  const auto read = wire::decode_ids(frame, request_ids_);
  if (!read) return break_off(peer, read.error());
  if (type == wire::FrameType::acknowledge) {
    return driver_.apply(core::Acknowledged{peer.id, &request_ids_});
  }
  if (type == wire::FrameType::abandon) {
    return driver_.apply(core::Abandoned{peer.id, &request_ids_});
  }
  driver_.apply(core::Heartbeat{peer.id, frame.header.id, &request_ids_});
}

/// memory  in which the frame lies alone; null: it does not
void FrameReader::handle_request(Peer& peer, const wire::Frame& frame,
                                 core::ChargedMemory* memory) {
  const Result<void> read = wire::decode_request(frame, request_);
  if (read) {
    const bool is_first = std::exchange(was_postponed_, false);
    return driver_.apply(
        core::Requested{peer.id, &request_, memory, holdings_.unsent(peer, is_first)});
  }
  if (read.error().code != ErrorCode::unsupported) return break_off(peer, read.error());
  if (wire::decode_ids(frame, request_ids_)) {
    driver_.apply(core::Acknowledged{peer.id, &request_ids_});
  }
  if (!peer.is_gone) refuse(peer, frame.header, read.error());
}

void FrameReader::refuse(Peer& peer, const wire::FrameHeader& header, Error why) {
  why.operation = wire::name_of(static_cast<wire::Operation>(header.code));
  why.decided_by = "server";
  driver_.reply_error(peer, header, why);
}

void FrameReader::handle_echo(Peer& peer, const wire::Frame& frame) {
  const auto token = wire::decode_echo(frame);
  if (!token) return break_off(peer, token.error());
  driver_.apply(core::Echo{peer.id, *token});
}

void FrameReader::handle_unstorable(Peer& peer, const FrameAssembler::Unstorable& frame) {
  driver_.apply(core::Acknowledged{peer.id, &frame.acknowledged});
  if (!peer.is_gone) refuse(peer, frame.header, frame.why);
}

/// Ends the connection of a peer that breaks the protocol, and tells it why. Its session has the
/// grace to come back, as after any end of a connection that both sides know of.
void FrameReader::break_off(Peer& peer, const Error& why) {
  ++driver_.counts().breaches;
  if (log_.admits(peer.unit->name, LogLevel::warning, driver_.now())) {
    log_.line(LogLevel::warning, name_of(peer) + ": closed: " + why.message());
  }
  wire::Event last;
  last.kind = wire::EventKind::session_ended;
  last.error = why;
  last.error.decided_by = "server";
  last.ends_session = false;
  std::string body;
  wire::append_event(body, last);
  driver_.send_event(peer, last.kind, body);
  connections_.close_after_flush(peer);
  const std::string refused =
      peer.guest == nullptr ? std::string() : name_of(peer) + ": " + why.message();
  driver_.apply(core::Disconnected{peer.id, core::DisconnectCause::closed, refused});
}

}  // namespace muster::server
