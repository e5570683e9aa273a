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
  shelf_.has_dropped(member.incoming_objects_count);
  dropped_count_ += std::exchange(member.incoming_objects_count, 0);
  if (member.incoming.empty() && member.awaiting.empty()) return;
  gone_.push_back(&member);
  put_off();
}

void StreamEnds::close(const Failure& failure) {
  if (closed_) return;
  for (Member& member : roster_.members) {
    dropped_count_ += member.incoming_objects_count;
    shelf_.has_dropped(std::exchange(member.incoming_objects_count, 0));
  }
  shelf_.close_streams();
  closed_ = failure;
  if (!streams_.empty()) put_off();
}

/// What can be done in this event is.
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
  if (!gone.incoming.empty()) {
    drop_one_of(gone.incoming.first());
  } else if (!gone.awaiting.empty()) {
    tell(gone.awaiting.first());
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
  return closed_ || !roster_.members[key.source].live() || !roster_.members[key.destination].live();
}

void StreamEnds::tell(StreamWait& wait) {
  const Member& source = roster_.members[wait.stream.key.source];
  const Member& receiver = roster_.members[wait.stream.key.destination];
  const Duration elapsed = services_.now() - wait.parked.received;
  if (receiver.standing == Standing::fenced) {
    return services_.answer(wait.parked, answer_of_failure(roster_.fenced, elapsed));
  }
  if (closed_) return services_.answer(wait.parked, answer_of_failure(closed_, elapsed));
  services_.fail(wait.parked, roster_.leave_error(source.live() ? receiver : source));
}

}  // namespace muster::core
