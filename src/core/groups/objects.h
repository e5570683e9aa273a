#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "core/groups/roster.h"
#include "core/memory/chain.h"
#include "core/memory/held_bytes.h"
#include "core/memory/slab.h"
#include "core/session/engine_services.h"
#include "wire/request.h"

// The payloads of streams and rounds: stored, listed and expired in one way.

namespace muster::core {

class Shelf;

struct StreamPlace {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint64_t tag = 0;
  std::uint64_t sequence = 0;
};
struct RoundPlace {
  std::uint64_t round = 0;
  std::uint32_t rank = 0;  ///< whose value it is; of a whole all_gather: the rank that decided it
};
using ObjectPlace = std::variant<StreamPlace, RoundPlace>;

struct Object {
  Object(std::uint32_t its_slot, Shelf& its_shelf, ObjectPlace its_place, std::uint32_t its_codec,
         Payload its_value, HeldBytes its_record, Instant now)
      : shelf(its_shelf),
        place(its_place),
        value(std::move(its_value)),
        record(std::move(its_record)),
        stored(now),
        codec(its_codec),
        slot(its_slot) {}

  Shelf& shelf;
  ObjectPlace place;
  Payload value;
  HeldBytes record;
  Instant stored;
  std::uint32_t codec;
  std::uint32_t slot;
  ChainLink<Object> by_age{*this};     ///< in its shelf, when it can expire
  ChainLink<Object> in_stream{*this};  ///< of a stream: in the order of sending
  ChainLink<Object> of_source{*this};  ///< of a stream: all that its sender has sent
};

/// All objects of one namespace, in slots that do not move, so that a listing sees each that
/// exists throughout exactly once.
class Objects {
 public:
  void list(EngineServices& services, const RequestContext& context, const wire::List& request);

 private:
  friend class Shelf;
  Slab<Object> slots_;
};

/// The objects of one epoch, and which of them expires next.
class Shelf {
 public:
  /// `timer` belongs to the epoch; it is armed for the oldest object.
  Shelf(EngineServices& services, Quota& quota, Objects& objects, Timer& timer, Roster& roster)
      : services_(services), quota_(quota), objects_(objects), timer_(timer), roster_(roster) {}
  Shelf(const Shelf&) = delete;
  Shelf& operator=(const Shelf&) = delete;

  /// Null when the quota refuses.
  Object* store(const ObjectPlace& place, std::uint32_t codec, std::string_view value);
  /// For what takes the place of objects that go at the same time.
  Object& store_always(const ObjectPlace& place, std::uint32_t codec, Payload value) {
    return put(place, codec, std::move(value), HeldBytes());
  }
  void remove(Object& object);
  /// The objects of its streams are dropped: not counted and listed any more. They stay in memory
  /// until `remove`.
  void close_streams() { has_streams_ = false; }
  /// Whether the object is of a stream that is closed, or to a member that has gone. Objects of
  /// rounds are never dropped.
  bool is_dropped(const Object& object) const;
  /// So many objects are dropped from now on.
  void count_dropped(std::uint64_t count) { services_.counted().held.objects -= count; }

  /// From now on the object can expire.
  void let_age(Object& object);
  /// The oldest object, if it has expired.
  Object* expired() const;
  /// After the timer has fired and `expired()` is null.
  void rearm();

  EffectList& effects() { return services_.effects(); }
  Quota& quota() { return quota_; }

 private:
  friend class Objects;
  Object& put(const ObjectPlace& place, std::uint32_t codec, Payload value, HeldBytes record);
  Instant expires(const Object& object) const;

  EngineServices& services_;
  Quota& quota_;
  Objects& objects_;
  Timer& timer_;
  Roster& roster_;
  bool has_streams_ = true;
  Chain<Object> by_age_;
};

}  // namespace muster::core
