#include "plan.h"

#include <algorithm>

namespace muster::sim {
namespace {

using namespace std::chrono_literals;

std::uint32_t ranks_of(Random& random) {
  // Large worlds cost much; most defects show in small ones.
  const std::uint64_t chance = random.below(400);
  const auto from_to = [&](std::uint64_t low, std::uint64_t high) {
    return static_cast<std::uint32_t>(low + random.below(high - low + 1));
  };
  if (chance == 0) return from_to(33, 64);
  if (chance < 6) return from_to(9, 32);
  if (chance < 60) return from_to(5, 8);
  return from_to(2, 4);
}

}  // namespace

Plan::Plan(std::uint64_t its_seed) : seed(its_seed) {
  Random random(its_seed);
  ranks = ranks_of(random);
  length = random.between(20s, ranks > 8 ? Duration(30s) : Duration(60s));
  drift = random.one_in(3) ? 0.05 : random.one_in(2) ? 0.0002 : 0;
  delay_max = random.one_in(4) ? Duration(60ms) : Duration(3ms);
  thinking_max = random.one_in(4) ? Duration(100ms) : Duration(1s);
  options.limits.session_timeout = random.one_in(3) ? Duration(15s) : Duration(5s);
  const std::uint64_t work = random.below(6);
  has_store_work = work != 0;
  has_group_work = work != 1;
  const auto sometimes = [&](std::uint64_t most) {
    return random.one_in(2) ? 0 : static_cast<std::uint32_t>(1 + random.below(most));
  };
  if (!random.one_in(8)) {  // else nothing goes wrong
    short_cuts = sometimes(10);
    impostors = random.one_in(4) ? 4 : 0;
    const bool is_rough = random.one_in(3);  // nothing lasts
    stops = sometimes(6);
    if (!is_rough) {
      long_cuts = sometimes(4);
      deaths = sometimes(6);
      reports = sometimes(2);
      server_pauses = random.one_in(3) ? 2 : 0;
      server_deaths = random.one_in(3) ? 2 : 0;
    }
  }
  if (random.one_in(6)) {
    has_small_limits = true;
    options.open_rounds_max = 2 + static_cast<std::uint32_t>(random.below(3));
    options.limits.parked_waits_max = 8;
    options.memory_bytes_max = options.namespace_memory_bytes_max = 64u << 10;
  }
  plan_groups(random);
  has_observer = random.one_in(5);
  options.hash_key = {random.next(), random.next()};
  options.incarnation = 1 + random.below(1000);
  // In every second story events put off most of what they may.
  has_identities = options.hash_key[1] % 3 == 0;
  reloads = has_identities ? 30 : 0;
  revocations = has_identities && options.hash_key[1] % 2 == 0 ? 4 : 0;
  if (has_identities) impostors = std::max<std::uint32_t>(impostors, 4);
  has_queues = options.hash_key[0] / 32 % 3 == 0;
  // So that stories without guests are what they were.
  if (options.hash_key[0] / 2 % 4 == 0) {
    guests = 1 + static_cast<std::uint32_t>(options.hash_key[0] / 8 % 4);
    const bool is_kept = options.hash_key[0] / 32 % 2 == 0;
    if (is_kept) guests_idle_lifetime = 1s + Duration(options.hash_key[0] % 4'000'000);
    options.list_slots_per_page = 40;
  }
  if (options.hash_key[0] % 2 == 0) options.work_per_event_max = 1 + options.hash_key[1] % 8;
}

void Plan::plan_groups(Random& random) {
  const auto expiration = [&] {
    return random.one_in(4) ? random.between(2s, 10s) : Duration::zero();
  };
  std::vector<std::uint32_t> all;
  for (std::uint32_t slot = 0; slot < ranks; ++slot) all.push_back(slot);
  groups.push_back({{"g", all, expiration()}});
  const std::uint64_t more = random.one_in(3) ? 1 + random.below(2) : 0;
  for (std::uint64_t number = 0; number < more; ++number) {
    GroupPlan group{"g" + std::to_string(number), {}, expiration()};
    for (const std::uint32_t slot : all) {
      if (!random.one_in(3)) group.slots.push_back(slot);
    }
    if (random.one_in(2)) std::reverse(group.slots.begin(), group.slots.end());
    if (group.slots.size() > 1) groups[0].push_back(std::move(group));
  }
  if (!random.one_in(6)) return;
  GroupPlan other{"g", {}, expiration()};
  for (const std::uint32_t slot : all) {
    if (random.one_in(2)) other.slots.push_back(slot);
  }
  if (!other.slots.empty()) groups.push_back({std::move(other)});
}

bool Plan::has_expiration() const {
  for (const auto& name_space : groups) {
    for (const GroupPlan& group : name_space) {
      if (group.data_expiration != Duration::zero()) return true;
    }
  }
  return false;
}

bool Plan::is_in_both(std::uint32_t slot) const {
  if (groups.size() < 2) return false;
  const auto& slots = groups[1][0].slots;
  return std::find(slots.begin(), slots.end(), slot) != slots.end();
}

std::string Plan::text() const {
  const auto seconds = [](Duration duration) {
    return std::to_string(static_cast<double>(duration.count()) / 1e6) + " s";
  };
  return std::to_string(ranks) + " ranks for " + seconds(length) + ", session timeout " +
         seconds(options.limits.session_timeout) + ", drift " + std::to_string(drift) +
         ", delay up to " + seconds(delay_max) + ", " + std::to_string(groups[0].size()) +
         " groups" + (groups.size() > 1 ? ", two namespaces" : "") +
         (has_expiration() ? ", expiration" : "") + (has_observer ? ", an observer" : "") +
         (guests != 0 ? ", " + std::to_string(guests) + " guests" : "") +
         (has_identities ? ", identities" : "") + (has_store_work ? ", store" : "") +
         (has_queues ? ", queues" : "") + (has_group_work ? ", group" : "") +
         (has_small_limits ? ", small limits" : "") +
         "; per minute: " + std::to_string(short_cuts) + " short and " + std::to_string(long_cuts) +
         " long cuts, " + std::to_string(stops) + " stops, " + std::to_string(deaths) +
         " deaths, " + std::to_string(reports) + " reports, " + std::to_string(revocations) +
         " revocations, " + std::to_string(impostors) + " impostors, " +
         std::to_string(server_pauses) + " server pauses, " + std::to_string(server_deaths) +
         " server deaths";
}

}  // namespace muster::sim
