#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/time.h"
#include "core/memory/chain.h"
#include "net/address/unit.h"
#include "server/peer/budget.h"

namespace muster::server {

struct Newcomer;
struct Peer;
class Units;

/// Whose connections are counted together, and what they have of what is shared.
struct Unit {
  Unit(Units& its_units, const net::UnitId& its_id, std::string its_name)
      : units(its_units), id(its_id), name(std::move(its_name)) {}

  Units& units;
  net::UnitId id;
  std::string name;  ///< as the log and the engine know it
  std::size_t connections_count = 0;
  core::Chain<Newcomer> newcomers;  ///< the oldest first
  std::size_t newcomers_count = 0;
  core::ChainLink<Unit> with_as_many{*this};  ///< among the units with as many newcomers

  // See Handshakes.
  core::Chain<Newcomer> at_door;              ///< the oldest first
  core::ChainLink<Unit> in_door_turn{*this};  ///< among those of which somebody is there
  std::size_t handshakes_count = 0;           ///< that are under way
  base::Instant penalties_until{};            ///< it has paid for its failures

  // See WorkScheduler.
  Budget work;
  core::Chain<Peer> waiting;             ///< for their turn
  core::ChainLink<Unit> in_turn{*this};  ///< among those of which somebody waits
};

/// A connection's place in its unit, given up when it is destroyed.
class UnitPlace {
 public:
  explicit UnitPlace(Unit& unit) : unit_(&unit) { ++unit.connections_count; }
  ~UnitPlace() { leave(); }
  UnitPlace(UnitPlace&& other) noexcept : unit_(std::exchange(other.unit_, nullptr)) {}
  UnitPlace& operator=(UnitPlace&&) = delete;
  UnitPlace(const UnitPlace&) = delete;
  UnitPlace& operator=(const UnitPlace&) = delete;

  Unit& operator*() const { return *unit_; }
  Unit* operator->() const { return unit_; }

 private:
  void leave();

  Unit* unit_;
};

/// The units that have connections, and some of those that had some.
class Units {
 public:
  Unit& find_or_make(const net::UnitId& id) { return find_or_make(id, {}); }
  /// name  of a new one; empty: as its id tells it
  Unit& find_or_make(const net::UnitId& id, std::string_view name);
  std::size_t count() const { return units_.size(); }

 private:
  friend class UnitPlace;
  void has_no_connections(const Unit& unit);

  struct Hash {
    std::size_t operator()(const net::UnitId& id) const {
      return std::hash<std::uint64_t>()(id.number * 8 + static_cast<std::uint64_t>(id.kind));
    }
  };
  std::unordered_map<net::UnitId, std::unique_ptr<Unit>, Hash> units_;
};

}  // namespace muster::server
