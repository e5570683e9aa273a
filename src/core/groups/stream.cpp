#include "core/groups/stream.h"

#include <algorithm>

#include "core/session/failure.h"
#include "core/session/reply.h"
#include "muster/codec.h"
#include "wire/writer.h"

// Life of an object: sent (its sequence is the stream's next) -> handed to a receiver that waits,
// or kept until one asks -> handed out again and again until the receiver acknowledges it, so
// that a reply that is lost loses nothing -> gone. Or it outlives the group's expiration, always
// the oldest of its stream first: then its sequence is in the stream's one expired range.
//
// Life of a stream: all there is of it at most times is the number of its next object; the rest
// exists while objects are in it, the receiver waits, or an expired range was not told of yet.
//
// End of a stream: core/groups/stream_ends.h.

namespace muster::core {
namespace {

// A node of the map of counters, its allocation, and its buckets just after they have doubled.
constexpr std::uint64_t counter_bytes = 2 * (sizeof(StreamKey) + sizeof(std::uint64_t) + 32);
constexpr std::uint64_t stream_bytes = sizeof(StreamKey) + sizeof(Stream) + 32;

StreamKey key_of(const Object& object) {
  const auto& place = std::get<StreamPlace>(object.place);
  return {place.source, place.destination, place.tag};
}

std::uint64_t sequence_of(const Object& object) {
  return std::get<StreamPlace>(object.place).sequence;
}

std::string text_of_codec(std::uint32_t id) {
  const std::string number = std::to_string(id);
  switch (id) {
    case codec_id::raw: return number + " (raw)";
    case codec_id::cereal: return number + " (cereal)";
    case codec_id::json: return number + " (JSON)";
    case codec_id::tensor: return number + " (tensor)";
    case codec_id::msgpack: return number + " (MSGPACK)";
    case codec_id::pickle: return number + " (PICKLE)";
    default: return number;
  }
}

/// The first sequence that has not expired.
std::uint64_t first_kept(const Stream& stream) {
  return stream.objects.empty() ? stream.next : sequence_of(stream.objects.first());
}

}  // namespace

Stream::Stream(Streams& its_streams, StreamKey its_key) : streams(its_streams), key(its_key) {}

StreamWait::StreamWait(Stream& its_stream, Parked& its_parked, std::uint32_t its_codec)
    : Wait(its_parked), stream(its_stream), codec(its_codec) {
  stream.waiting = this;
  stream.streams.waits_.append(link);
  Member& source = stream.streams.roster_.members[stream.key.source];
  source.streams.awaiting.append(of_source);
  interruptions_before = source.interruptions.count;
}

StreamWait::~StreamWait() {
  stream.waiting = nullptr;
  stream.streams.drop_if_idle(stream);
}

bool StreamWait::is_decided() const { return stream.streams.ends.has_ended(*this); }

void StreamWait::timed_out() { stream.streams.timed_out(*this); }

std::string StreamWait::target() const {
  return text_of(stream.streams.roster()) + " from rank " + std::to_string(stream.key.source) +
         " tag " + std::to_string(stream.key.tag);
}

Streams::Streams(EngineServices& services, Quota& quota, Roster& roster, Shelf& shelf)
    : ends(services, roster, shelf, active_, waits_),
      services_(services),
      quota_(quota),
      roster_(roster),
      shelf_(shelf),
      next_(0, StreamKeyHash{services.options().hash_key}),
      active_(0, StreamKeyHash{services.options().hash_key}) {}

Streams::~Streams() {
  services_.counted().held.streams -= next_.size();
  for (auto& [key, stream] : active_) {
    while (!stream.objects.empty()) shelf_.remove(stream.objects.first());
  }
}

void Streams::send(const RequestContext& context, Member& source, const wire::Send& request) {
  if (request.destination >= roster_.world_size()) return services_.fail(context, no_rank_error());
  const Member& destination = roster_.members[request.destination];
  if (!destination.live()) return services_.fail(context, roster_.leave_error(destination));
  const std::uint32_t bytes_max = services_.options().limits.value_bytes_max;
  if (request.value.size() > bytes_max) {
    return services_.fail(context, too_large("the object", request.value.size(), "bytes", bytes_max,
                                             "value_bytes_max"));
  }
  StreamKey key{source.rank, request.destination, request.tag};
  const std::uint64_t next = next_sequence(key);
  if (request.sequence != next) {
    return services_.fail(context,
                          gap_error(next, request.sequence, "of the stream's next object"));
  }

  HeldBytes counter;
  HeldBytes record;
  const bool room = (next != 0 || counter.add(quota_, counter_bytes)) &&
                    (find(key) != nullptr || record.add(quota_, stream_bytes));
  // All that may fail comes before anything is changed for good.
  Stream& stream = activate(key);
  std::uint64_t& counter_of_key = next_[key];
  Object* object = nullptr;
  if (room) {
    object = shelf_.store(StreamPlace{key.source, key.destination, key.tag, next}, request.codec,
                          request.value);
  }
  if (object == nullptr) {
    if (next == 0) next_.erase(key);
    drop_if_idle(stream);
    return services_.fail(context, memory_exhausted(quota_, request.value.size()));
  }
  if (next == 0) ++services_.counted().held.streams;
  counters_.absorb(counter);
  stream.record.absorb(record);
  counter_of_key = stream.next = next + 1;
  stream.objects.append(object->in_stream);
  source.streams.sent.append(object->of_source);
  shelf_.let_age(*object);
  services_.answer(context, answer_of(wire::NumberReply{static_cast<std::int64_t>(next)}));
  if (stream.waiting == nullptr) return;
  if (ends.has_ended(*stream.waiting)) return ends.tell(*stream.waiting);
  deliver(stream, *stream.waiting);
}

void Streams::receive(const RequestContext& context, Member& destination,
                      const wire::Receive& request) {
  if (request.source >= roster_.world_size()) return services_.fail(context, no_rank_error());
  const Member& source = roster_.members[request.source];
  StreamKey key{request.source, destination.rank, request.tag};
  const std::uint64_t sequence = request.sequence;
  Stream* stream = find(key);
  if (stream != nullptr && stream->waiting != nullptr && ends.has_ended(*stream->waiting)) {
    ends.tell(*stream->waiting);
    stream = find(key);
  }
  const std::uint64_t next = next_sequence(key);
  const std::uint64_t taken = stream != nullptr ? stream->taken : next;
  const std::uint64_t asked = stream != nullptr ? stream->asked : next;
  if (sequence < taken || sequence > asked) {
    return services_.fail(context, gap_error(asked, sequence, "of the receiver's next object"));
  }
  if (stream != nullptr && stream->waiting != nullptr) {
    return services_.fail(context, roster_.error(ErrorCode::busy, "another receive waits here"));
  }
  if (stream != nullptr && sequence < first_kept(*stream)) {
    stream->asked = std::max(stream->asked, sequence + 1);
    return services_.answer(context, expired_answer(*stream, sequence));
  }
  if (stream != nullptr && sequence < next) {
    const Object& object =
        *std::find_if(stream->objects.begin(), stream->objects.end(),
                      [&](const Object& each) { return sequence_of(each) == sequence; });
    if (object.codec != request.codec) {
      return services_.fail(context, codec_error(object, request.codec));
    }
    stream->asked = std::max(stream->asked, sequence + 1);
    return services_.answer(context, answer_with(object));
  }
  if (!source.live()) return services_.fail(context, roster_.leave_error(source));
  if (context.timeout <= Duration::zero()) {
    return services_.fail(context, roster_.error(ErrorCode::not_found, nothing_sent(key)));
  }
  Parked* parked = services_.park(context);
  if (parked == nullptr) return;
  parked->wait = std::make_unique<StreamWait>(activate(key), *parked, request.codec);
}

/// The object that the receiver waits for has come.
void Streams::deliver(Stream& stream, StreamWait& wait) {
  const Object& object = stream.objects.last();
  Parked& parked = wait.parked;
  if (object.codec != wait.codec) return services_.fail(parked, codec_error(object, wait.codec));
  stream.asked = sequence_of(object) + 1;
  services_.answer(parked, answer_with(object));
}

void Streams::timed_out(StreamWait& wait) {
  if (ends.has_ended(wait)) return ends.tell(wait);
  Error error = roster_.error(ErrorCode::timed_out, nothing_sent(wait.stream.key));
  roster_.blame(error, roster_.members[wait.stream.key.source]);
  services_.fail(wait.parked, std::move(error));
}

void Streams::acknowledged(const ReceivedObject& object) {
  Stream* stream = find({object.source, object.destination, object.tag});
  if (stream == nullptr || object.sequence >= stream->asked) return;
  stream->taken = std::max(stream->taken, object.sequence + 1);
  while (!stream->objects.empty() && sequence_of(stream->objects.first()) < stream->taken) {
    shelf_.remove(stream->objects.first());
  }
  drop_if_idle(*stream);
}

void Streams::expired(Object& object) {
  Stream& stream = *find(key_of(object));
  stream.last_expired_sent = object.stored;
  shelf_.remove(object);
  drop_if_idle(stream);
}

void Streams::expire_own(const RequestContext& context, Member& source, Duration older_than) {
  std::int64_t count = 0;
  for (std::uint32_t left = wire::expired_objects_max; left > 0 && !source.streams.sent.empty();
       --left) {
    Object& oldest = source.streams.sent.first();
    if (context.now - oldest.stored < older_than) break;
    // What was handed out already is with its receiver, though not acknowledged: it goes uncounted.
    const bool is_kept = sequence_of(oldest) >= find(key_of(oldest))->asked;
    if (is_kept && !shelf_.is_dropped(oldest)) ++count;
    services_.effects().spend(1);
    expired(oldest);
  }
  services_.answer(context, answer_of(wire::NumberReply{count}));
}

std::uint64_t Streams::next_sequence(const StreamKey& key) const {
  const auto place = next_.find(key);
  return place == next_.end() ? 0 : place->second;
}

int Streams::forget(int work_max) {
  const int ended = ends.work(work_max);
  int forgotten = 0;
  for (; ended + forgotten < work_max && !next_.empty(); ++forgotten) {
    next_.erase(next_.begin());
    --services_.counted().held.streams;
  }
  services_.effects().spend(static_cast<std::uint64_t>(forgotten));
  return ended + forgotten;
}

/// "the source has sent nothing with tag 30; tag 0 has 1 object": what a receiver with another tag
/// would get. Looks at a bounded number of the source's objects.
std::string Streams::nothing_sent(const StreamKey& key) const {
  constexpr int objects_looked_at_max = 100;
  constexpr std::size_t tags_told_max = 4;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> counts;  // of objects, by tag
  int looked_at = 0;
  for (const Object& object : roster_.members[key.source].streams.sent) {
    if (++looked_at > objects_looked_at_max) break;
    const StreamKey other = key_of(object);
    if (other.destination != key.destination || other.tag == key.tag) continue;
    if (sequence_of(object) < active_.find(other)->second.asked) continue;  // was handed out
    const auto count = std::find_if(counts.begin(), counts.end(),
                                    [&other](const auto& each) { return each.first == other.tag; });
    if (count != counts.end()) {
      ++count->second;
    } else if (counts.size() < tags_told_max) {
      counts.emplace_back(other.tag, 1);
    }
  }
  std::string text = "the source has sent nothing with tag " + std::to_string(key.tag);
  for (const auto& [tag, count] : counts) {
    text += (tag == counts.front().first ? "; tag " : ", tag ") + std::to_string(tag) + " has " +
            std::to_string(count) + (count == 1 ? " object" : " objects");
  }
  if (looked_at > objects_looked_at_max && !counts.empty()) text += ", or more";
  return text;
}

Error Streams::no_rank_error() const {
  return roster_.error(ErrorCode::invalid_argument, "the peer is no rank of the group");
}

Stream* Streams::find(const StreamKey& key) {
  const auto place = active_.find(key);
  return place == active_.end() ? nullptr : &place->second;
}

Stream& Streams::activate(const StreamKey& key) {
  const auto [place, made] = active_.try_emplace(key, *this, key);
  Stream& stream = place->second;
  if (made) {
    stream.next = stream.taken = stream.asked = next_sequence(key);
    roster_.members[key.destination].streams.incoming.append(stream.to_destination);
  }
  return stream;
}

void Streams::drop_if_idle(Stream& stream) {
  const bool idle = stream.objects.empty() && stream.waiting == nullptr &&
                    stream.taken == stream.next;  // or the receiver is yet to learn what expired
  if (idle) active_.erase(StreamKey(stream.key));
}

/// A ReceiveReply.
Answer Streams::answer_with(const Object& object) const {
  const auto& place = std::get<StreamPlace>(object.place);
  Answer answer;
  wire::Writer writer(answer.head);
  writer.u64(place.sequence);
  writer.u32(object.codec);
  writer.u32(static_cast<std::uint32_t>(object.value->view().size()));
  answer.tail = object.value;
  answer.on_acknowledged =
      ReceivedObject{roster_.epoch, place.source, place.destination, place.tag, place.sequence};
  return answer;
}

Error Streams::codec_error(const Object& object, std::uint32_t wanted) const {
  Error error = roster_.error(ErrorCode::codec_mismatch,
                              "the sender used codec " + text_of_codec(object.codec) +
                                  ", the receiver wants " + text_of_codec(wanted));
  error.expected = wanted;
  error.actual = object.codec;
  roster_.blame(error, roster_.members[std::get<StreamPlace>(object.place).source]);
  return error;
}

Error Streams::gap_error(std::uint64_t expected, std::uint64_t actual, std::string detail) const {
  Error error = roster_.error(ErrorCode::sequence_gap, "the sequence " + std::move(detail));
  error.expected = expected;
  error.actual = actual;
  return error;
}

std::vector<wire::ReceiverEntry> Streams::receivers() const {
  std::vector<wire::ReceiverEntry> receivers;
  std::size_t looked_at = 0;
  for (const StreamWait& wait : waits_) {
    if (++looked_at > wire::list_entries_max) break;
    if (ends.has_ended(wait)) continue;
    const StreamKey& key = wait.stream.key;
    receivers.push_back({key.destination, key.source, key.tag, wait.stream.taken,
                         services_.now() - wait.parked.received});
  }
  return receivers;
}

/// Acknowledged as the object itself would be: until then it is told again.
Answer Streams::expired_answer(const Stream& stream, std::uint64_t sequence) const {
  Error error =
      roster_.error(ErrorCode::expired, "the object was sent " +
                                            in_seconds(services_.now() - stream.last_expired_sent) +
                                            " ago or earlier and outlived its time");
  error.actual = sequence;
  roster_.blame(error, roster_.members[stream.key.source]);
  Answer answer = answer_of_failure(make_failure(quota_, error), {});
  answer.on_acknowledged = ReceivedObject{roster_.epoch, stream.key.source, stream.key.destination,
                                          stream.key.tag, sequence};
  return answer;
}

}  // namespace muster::core
