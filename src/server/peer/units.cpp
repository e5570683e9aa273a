#include "server/peer/units.h"

namespace muster::server {
namespace {

/// Of units that may have no connection. Most often the next one comes soon.
constexpr std::size_t units_kept = 256;

}  // namespace

Unit& Units::find_or_make(const net::UnitId& id, std::string_view name) {
  std::unique_ptr<Unit>& unit = units_[id];
  if (!unit)
    unit = std::make_unique<Unit>(*this, id, name.empty() ? to_string(id) : std::string(name));
  return *unit;
}

void Units::has_no_connections(const Unit& unit) {
  if (units_.size() > units_kept) units_.erase(net::UnitId(unit.id));
}

void UnitPlace::leave() {
  if (unit_ != nullptr && --unit_->connections_count == 0) unit_->units.has_no_connections(*unit_);
}

}  // namespace muster::server
