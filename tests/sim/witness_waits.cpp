#include <algorithm>

#include "oracle.h"
#include "witness.h"

// Whoever waits for a key or an object is answered by the very event that brings it: after each
// event nobody waits for what is there. Only of what is there for sure: keys that may go by
// themselves, or may have been taken by one whose connection has ended, count for nothing.

namespace muster::sim {
namespace {

using wire::Operation;

bool is_taken_by(Operation operation) { return operation == wire::operation<wire::Take>; }

}  // namespace

std::string Witness::key_in(const Session& session, std::string_view key) const {
  return session.name_space + "/" + std::string(key);
}

bool Witness::is_in_hand(const Session& session, std::uint64_t request) const {
  return hand_ != nullptr && hand_session_ == session.id && hand_->id == request;
}

/// Of the first time that a request is answered; what changes keys is answered at once.
void Witness::note_answer(const Session& session, Asked& asked, std::uint64_t request,
                          std::uint16_t code) {
  if (is_taken_by(asked.operation) && code == 0) {
    if (asked.keys.empty() && is_in_hand(session, request)) {
      asked.keys.push_back(key_in(session, std::get<wire::Take>(hand_->body).key));
    }
    for (const std::string& key : asked.keys) {
      present_.erase(key);
      taken_.insert(key);
    }
  }
  if (!is_in_hand(session, request) || code != 0 || asked.is_repeated) return;
  if (const auto* send = std::get_if<wire::Send>(&hand_->body)) return note_sent(session, *send);
  note_write(session, hand_->body);
}

void Witness::note_write(const Session& session, const wire::RequestBody& body) {
  if (const auto* set = std::get_if<wire::Set>(&body)) {
    if (set->only_if_absent) return;
    write(session, set->key, !set->ttl && !set->bind_to_session);
  } else if (const auto* multi_set = std::get_if<wire::MultiSet>(&body)) {
    for (const auto& entry : multi_set->entries) write(session, entry.key, !multi_set->ttl);
  } else if (const auto* append = std::get_if<wire::Append>(&body)) {
    written_.push_back(key_in(session, append->key));
  } else if (const auto* add = std::get_if<wire::Add>(&body)) {
    written_.push_back(key_in(session, add->key));
  } else if (const auto* remove = std::get_if<wire::Remove>(&body)) {
    for (const std::string_view key : remove->keys) present_.erase(key_in(session, key));
  } else if (const auto* touch = std::get_if<wire::Touch>(&body)) {
    if (touch->ttl) present_.erase(key_in(session, touch->key));
  } else if (const auto* swap = std::get_if<wire::CompareSet>(&body)) {
    if (swap->ttl) present_.erase(key_in(session, swap->key));
  }
}

void Witness::write(const Session& session, std::string_view key, bool stays) {
  std::string name = key_in(session, key);
  if (!stays) {
    present_.erase(name);
  } else if (doubtful_.count(name) == 0) {
    present_.insert(name);
  }
  written_.push_back(std::move(name));
}

std::optional<std::uint32_t> Witness::rank_of(std::uint64_t number, std::uint64_t session) const {
  const auto epoch = epochs_.find(number);
  if (epoch == epochs_.end()) return std::nullopt;
  for (const auto& [rank, holder] : epoch->second.sessions) {
    if (holder == session) return rank;
  }
  return std::nullopt;
}

void Witness::note_sent(const Session& session, const wire::Send& request) {
  const auto source = rank_of(request.epoch, session.id);
  if (!source) return;
  touched_stream_ = StreamKey{request.epoch, *source, request.destination, request.tag};
  streams_[*touched_stream_].sent = request.sequence + 1;
}

/// The request in hand was not answered at once.
void Witness::begin_to_wait(const Session& session, Asked& asked) {
  const Place place{session.id, hand_->id};
  const auto wait_for = [&](std::string_view key) {
    asked.keys.push_back(key_in(session, key));
    key_waits_[asked.keys.back()].push_back(place);
  };
  if (const auto* receive = std::get_if<wire::Receive>(&hand_->body)) {
    const auto destination = rank_of(receive->epoch, session.id);
    if (!destination) return;
    touched_stream_ = StreamKey{receive->epoch, receive->source, *destination, receive->tag};
    Stream& stream = streams_[*touched_stream_];
    stream.receiver = place;
    stream.wanted = receive->sequence;
    return;
  }
  asked.keys.clear();
  if (const auto* get = std::get_if<wire::Get>(&hand_->body)) wait_for(get->key);
  if (const auto* take = std::get_if<wire::Take>(&hand_->body)) wait_for(take->key);
  if (const auto* wait = std::get_if<wire::Wait>(&hand_->body)) {
    for (const std::string_view key : wait->keys) wait_for(key);
  }
  if (asked.keys.empty() || !are_there(asked, nullptr)) return;
  problem(std::string(wire::name_of(asked.operation)) + " waits for " + asked.keys.front() +
          ", which is there");
}

/// Whether all keys of a call are there for sure, or are the one that was just written.
bool Witness::are_there(const Asked& asked, const std::string* also) const {
  return std::all_of(asked.keys.begin(), asked.keys.end(), [&](const std::string& key) {
    return (also != nullptr && key == *also) || present_.count(key) != 0;
  });
}

void Witness::check_writes() {
  for (const std::string& key : written_) {
    const auto places = key_waits_.find(key);
    if (places != key_waits_.end()) check_written(key, places->second);
  }
  written_.clear();
  taken_.clear();
  if (touched_stream_) check_stream(streams_[*touched_stream_]);
  touched_stream_.reset();
}

/// Who reads is served first, then one who takes.
void Witness::check_written(const std::string& key, std::vector<Place>& places) {
  std::erase_if(places, [this](const Place& place) { return waiting(place) == nullptr; });
  for (const Place& place : places) {
    const Asked& asked = *waiting(place);
    const bool is_served = is_taken_by(asked.operation)
                               ? taken_.count(key) != 0 || doubtful_.count(key) != 0
                               : !are_there(asked, &key);
    if (is_served) continue;
    return problem(std::string(wire::name_of(asked.operation)) + " waits for " + key +
                   ", which was just written");
  }
}

void Witness::check_stream(const Stream& stream) {
  if (stream.wanted >= stream.sent || waiting(stream.receiver) == nullptr) return;
  problem("a receive waits for object " + std::to_string(stream.wanted) + ", which was sent");
}

}  // namespace muster::sim
