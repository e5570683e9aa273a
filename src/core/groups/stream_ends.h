#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/groups/objects.h"
#include "core/groups/roster.h"
#include "core/session/backlog.h"

namespace muster::core {

struct Stream;
struct StreamWait;

struct StreamKey {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint64_t tag = 0;
  friend bool operator==(const StreamKey&, const StreamKey&) = default;
};
struct StreamKeyHash {
  std::array<std::uint64_t, 2> hash_key;
  std::size_t operator()(const StreamKey& key) const;
};
using StreamsByKey = std::unordered_map<StreamKey, Stream, StreamKeyHash>;

/// How the streams of an epoch end: the destination has gone, or the epoch is broken or over. Then
/// their objects are dropped, and the receiver gets nothing any more, nor does one whose source has
/// gone; one whose source has interrupted the group may ask again. That is so at once; the objects
/// go and the receivers are told as events have time for it.
class StreamEnds final : public Backlog::Job {
 public:
  StreamEnds(EngineServices& services, Roster& roster, Shelf& shelf, StreamsByKey& streams,
             Chain<StreamWait>& waits)
      : services_(services), roster_(roster), shelf_(shelf), streams_(streams), waits_(waits) {}

  /// What it has sent stays receivable; what was sent to it goes.
  void member_left(Member& member);
  /// Whoever waits for its objects gets its `interruption`. Its count has grown already.
  void interrupted(Member& member);
  /// Nothing is delivered any more: objects go, receivers get `failure`; where it is stale_epoch,
  /// fenced ones get their own.
  void close(const Failure& failure);

  /// Whether the receiver gets nothing any more, and has only to be told.
  bool has_ended(const StreamWait& wait) const;
  /// Tells it why.
  void tell(StreamWait& wait);

  /// Objects that went with `close` or with their receiver.
  std::uint64_t dropped_count() const { return dropped_count_; }

  int work(int work_max) override;

 private:
  static const Member* first_to_leave(const Member& source, const Member& receiver);
  bool is_interrupted(const StreamWait& wait) const;
  void drop_objects_to(Member& member);
  void put_off();
  bool do_one();
  bool do_one_for(Member& gone);
  void drop_one_of(Stream& stream);

  EngineServices& services_;
  Roster& roster_;
  Shelf& shelf_;
  StreamsByKey& streams_;
  Chain<StreamWait>& waits_;
  Failure closed_;             ///< none: they are open
  std::vector<Member*> gone_;  ///< with streams to them, or receivers that wait for their objects
  std::uint32_t ended_count_ = 0;
  std::uint64_t dropped_count_ = 0;
};

}  // namespace muster::core
