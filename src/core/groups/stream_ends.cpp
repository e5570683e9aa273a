#include "core/groups/stream_ends.h"

#include <cstring>
#include <utility>

#include "core/groups/stream.h"
#include "core/memory/hash.h"

namespace muster::core {

std::size_t StreamKeyHash::operator()(const StreamKey& key) const {
  char bytes[16];
  std::memcpy(bytes, &key.source, 4);
  std::memcpy(bytes + 4, &key.destination, 4);
  std::memcpy(bytes + 8, &key.tag, 8);
  return keyed_hash(hash_key, {bytes, sizeof bytes});
}

void StreamEnds::member_left(Member& member) {
  if (closed_) return;
  member.streams.ended = ++ended_count_;
  drop_objects_to(member);
  if (member.streams.incoming.empty() && member.streams.awaiting.empty()) return;
  gone_.push_back(&member);
  put_off();
}

void StreamEnds::interrupted(Member& member) {
  if (closed_ || member.streams.awaiting.empty()) return;
  member.streams.interrupted = ++ended_count_;
  gone_.push_back(&member);
  put_off();
}

void StreamEnds::close(const Failure& failure) {
  if (closed_) return;
  for (Member& member : roster_.members) drop_objects_to(member);
  shelf_.close_streams();
  closed_ = failure;
  if (!streams_.empty()) put_off();
}

void StreamEnds::drop_objects_to(Member& member) {
  dropped_count_ += member.streams.incoming_objects_count;
  shelf_.count_dropped(std::exchange(member.streams.incoming_objects_count, 0));
}

/// Does what this event may still do; the backlog does the rest.
void StreamEnds::put_off() {
  EffectList& effects = services_.effects();
  const int work_max = effects.work_left();
  if (work(work_max) == work_max) effects.backlog().add(*this);
}

int StreamEnds::work(int work_max) {
  int done = 0;
  while (done < work_max && do_one()) ++done;
  services_.effects().spend(static_cast<std::uint64_t>(done));
  return done;
}

/// One step of what has to be done for streams that have ended. Returns whether there was one.
bool StreamEnds::do_one() {
  while (!gone_.empty()) {
    if (do_one_for(*gone_.back())) return true;
    gone_.pop_back();
  }
  if (!closed_) return false;
  if (!waits_.empty()) {
    tell(waits_.first());
  } else if (!streams_.empty()) {
    drop_one_of(streams_.begin()->second);
  } else {
    return false;
  }
  return true;
}

bool StreamEnds::do_one_for(Member& gone) {
  const bool any_waits = !gone.streams.awaiting.empty();
  if (gone.live()) {  // it has interrupted: who waited before comes first
    if (!any_waits || !is_interrupted(gone.streams.awaiting.first())) return false;
    tell(gone.streams.awaiting.first());
  } else if (!gone.streams.incoming.empty()) {
    drop_one_of(gone.streams.incoming.first());
  } else if (any_waits) {
    tell(gone.streams.awaiting.first());
  } else {
    return false;
  }
  return true;
}

/// Of a stream whose objects are dropped.
void StreamEnds::drop_one_of(Stream& stream) {
  if (stream.waiting != nullptr) return tell(*stream.waiting);
  if (!stream.objects.empty()) shelf_.remove(stream.objects.first());
  if (stream.objects.empty()) streams_.erase(StreamKey(stream.key));
}

bool StreamEnds::has_ended(const StreamWait& wait) const {
  const StreamKey& key = wait.stream.key;
  return closed_ || !roster_.members[key.source].live() ||
         !roster_.members[key.destination].live() || is_interrupted(wait);
}

bool StreamEnds::is_interrupted(const StreamWait& wait) const {
  return roster_.members[wait.stream.key.source].interruptions.count != wait.interruptions_before;
}

/// As was decided first, whatever has become of source and receiver since.
void StreamEnds::tell(StreamWait& wait) {
  const Member& source = roster_.members[wait.stream.key.source];
  const Member& receiver = roster_.members[wait.stream.key.destination];
  const std::uint32_t left = receiver.streams.ended;
  if (is_interrupted(wait) && (left == 0 || left > source.streams.interrupted)) {
    const Duration elapsed = services_.now() - wait.parked.received;
    return services_.answer(wait.parked, answer_of_failure(source.interruptions.last, elapsed));
  }
  if (const Member* const gone = first_to_leave(source, receiver)) {
    return services_.fail(wait.parked, roster_.leave_error(*gone));
  }
  const bool is_over = closed_.code == ErrorCode::stale_epoch;
  const bool is_fenced = is_over && receiver.standing == Standing::fenced;
  services_.answer(wait.parked, answer_of_failure(is_fenced ? roster_.fenced : closed_,
                                                  services_.now() - wait.parked.received));
}

/// Of those who have left while the streams were open; null: neither has.
const Member* StreamEnds::first_to_leave(const Member& source, const Member& receiver) {
  if (source.streams.ended == 0) return receiver.streams.ended != 0 ? &receiver : nullptr;
  const bool is_receiver =
      receiver.streams.ended != 0 && receiver.streams.ended < source.streams.ended;
  return is_receiver ? &receiver : &source;
}

}  // namespace muster::core
