#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace muster::server::http {

/// Who may be connected at the same time.
class Places {
 public:
  /// A place that is given back when this is destroyed.
  class Seat;
  using Place = std::shared_ptr<Seat>;

  Places(std::uint32_t all_max, std::uint32_t unit_max) : all_max_(all_max), unit_max_(unit_max) {}
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  /// Where all are taken, who has waited longest gives up his (`Seat::wait`).
  ///
  /// returns  null: there is none for this unit
  Place take(const std::string& unit);
  std::uint32_t count() const { return taken_; }
  /// For one without a place, who is told so. Of these there are few, too.
  std::shared_ptr<void> take_for_refusal();

 private:
  static constexpr std::uint32_t refusals_max = 64;

  bool has_room(const std::string& unit) const;
  Seat* longest_waiting(const std::string& unit) const;

  std::uint32_t all_max_;
  std::uint32_t unit_max_;
  std::uint32_t taken_ = 0;
  std::uint32_t refusals_ = 0;
  std::map<std::string, std::uint32_t> by_unit_;
  std::list<Seat*> waiting_;  ///< the longest first
};

class Places::Seat {
 public:
  Seat(Places& places, std::string unit);
  ~Seat();
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;

  /// Whoever has it has not asked for anything yet.
  ///
  /// yield  called at most once, when somebody else is to have it: destroys it at once
  void wait(std::function<void()> yield);
  /// It is kept from now on.
  void settle();

 private:
  friend class Places;

  Places& places_;
  const std::string unit_;
  std::function<void()> yield_;  ///< empty: it does not wait
};

}  // namespace muster::server::http
