#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace muster::server::http {

/// Who may be connected at the same time.
class Places {
 public:
  Places(std::uint32_t all_max, std::uint32_t unit_max) : all_max_(all_max), unit_max_(unit_max) {}

  /// Given back when it is destroyed.
  using Place = std::shared_ptr<void>;

  /// returns  null: there is none for this unit
  Place take(const std::string& unit);
  std::uint32_t count() const { return taken_; }
  /// For one without a place, who is told so. Of these there are few, too.
  Place take_for_refusal();

 private:
  static constexpr std::uint32_t refusals_max = 64;

  std::uint32_t all_max_;
  std::uint32_t unit_max_;
  std::uint32_t taken_ = 0;
  std::uint32_t refusals_ = 0;
  std::map<std::string, std::uint32_t> by_unit_;
};

}  // namespace muster::server::http
