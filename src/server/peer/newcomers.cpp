#include "server/peer/newcomers.h"

#include <algorithm>
#include <utility>

namespace muster::server {

Newcomers::~Newcomers() {
  while (!empty()) take(first());
}

Newcomer& Newcomers::add(ConnectionEvents& events, std::shared_ptr<net::Channel> connection,
                         Unit& unit, const Arrival& arrival, base::Instant now) {
  const std::size_t count_of_unit = unit.newcomers_count + 1;
  while (with_count_.size() <= count_of_unit) with_count_.emplace_back();
  auto made = std::make_unique<Newcomer>(events, std::move(connection), unit, arrival,
                                         now + limits_.hello_time);
  Newcomer& newcomer = *made.release();
  all_.append(newcomer.in_all);
  unit.newcomers.append(newcomer.in_unit);
  ++count_;
  ++unit.newcomers_count;
  count_anew(unit);
  return newcomer;
}

std::unique_ptr<Newcomer> Newcomers::take(Newcomer& newcomer) {
  newcomer.in_all.leave();
  newcomer.in_unit.leave();
  --count_;
  --newcomer.unit->newcomers_count;
  count_anew(*newcomer.unit);
  return std::unique_ptr<Newcomer>(&newcomer);
}

/// A count changes by one, so the most there are of one unit does, too.
void Newcomers::count_anew(Unit& unit) {
  const std::size_t count = unit.newcomers_count;
  if (count == 0) {
    unit.with_as_many.leave();
  } else {
    with_count_[count].append(unit.with_as_many);
  }
  most_ = std::max(most_, count);
  if (most_ > 0 && with_count_[most_].empty()) --most_;
}

Newcomer& Newcomers::first_of_fullest() const {
  return with_count_[most_].first().newcomers.first();
}

Newcomer* Newcomers::overdue(base::Instant now) const {
  if (all_.empty() || all_.first().deadline > now) return nullptr;
  return &all_.first();
}

base::Instant Newcomers::next_deadline() const {
  return all_.empty() ? base::far_future : all_.first().deadline;
}

}  // namespace muster::server
