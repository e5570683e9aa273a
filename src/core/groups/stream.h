#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "core/groups/objects.h"
#include "core/groups/roster.h"
#include "core/groups/stream_ends.h"
#include "wire/reply.h"
#include "wire/request.h"

// The ordered objects between the ranks of one epoch. A stream's life cycle is told in
// core/groups/stream.cpp.

namespace muster::core {

struct Stream;

/// A parked receive; there is at most one per stream.
struct StreamWait final : Wait {
  StreamWait(Stream& its_stream, Parked& its_parked, std::uint32_t its_codec);
  ~StreamWait() override;

  void timed_out() override;
  bool is_decided() const override;
  std::string target() const override;

  Stream& stream;
  std::uint32_t codec;
  std::uint64_t interruptions_before;      ///< by the source
  ChainLink<StreamWait> link{*this};       ///< among all of the epoch
  ChainLink<StreamWait> of_source{*this};  ///< among those that wait for its objects
};

class Streams;

/// A stream with something in it. Sequences below `taken` are acknowledged, from there to the
/// first object they have expired, from `next` on they are yet to be sent.
struct Stream {
  Stream(Streams& its_streams, StreamKey its_key);

  Streams& streams;
  StreamKey key;
  std::uint64_t next = 0;
  std::uint64_t taken = 0;
  std::uint64_t asked = 0;  ///< the highest sequence that the receiver may ask for
  Instant last_expired_sent{};
  Chain<Object> objects;
  StreamWait* waiting = nullptr;
  HeldBytes record;
  ChainLink<Stream> to_destination{*this};  ///< among those with something in them
};

class Streams {
 public:
  Streams(EngineServices& services, Quota& quota, Roster& roster, Shelf& shelf);
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  void send(const RequestContext& context, Member& source, const wire::Send& request);
  void receive(const RequestContext& context, Member& destination, const wire::Receive& request);
  void expire_own(const RequestContext& context, Member& source, Duration older_than);
  void timed_out(StreamWait& wait);
  /// The receiver has the object, and so all before it.
  void acknowledged(const ReceivedObject& object);
  void expired(Object& object);
  std::uint64_t next_sequence(const StreamKey& key) const;
  const Roster& roster() const { return roster_; }
  /// Who waits for an object.
  std::vector<wire::ReceiverEntry> receivers() const;

  /// Nobody refers to the epoch any more: does about `work_max` steps of forgetting all of it.
  ///
  /// returns  how many were done; less than `work_max` when nothing is left
  int forget(int work_max);

  StreamEnds ends;

 private:
  friend struct StreamWait;

  std::string nothing_sent(const StreamKey& key) const;
  Error no_rank_error() const;
  Stream* find(const StreamKey& key);
  Stream& activate(const StreamKey& key);
  void drop_if_idle(Stream& stream);
  void deliver(Stream& stream, StreamWait& wait);
  Answer answer_with(const Object& object) const;
  Error codec_error(const Object& object, std::uint32_t wanted) const;
  Error gap_error(std::uint64_t expected, std::uint64_t actual, std::string detail) const;
  Answer expired_answer(const Stream& stream, std::uint64_t sequence) const;

  EngineServices& services_;
  Quota& quota_;
  Roster& roster_;
  Shelf& shelf_;
  std::unordered_map<StreamKey, std::uint64_t, StreamKeyHash> next_;  // what was ever sent to
  StreamsByKey active_;  // those with something in them
  HeldBytes counters_;
  Chain<StreamWait> waits_;
};

}  // namespace muster::core
