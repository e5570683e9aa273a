#include "muster/watch.h"

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>

#include "base/failure.h"
#include "base/monotonic_now.h"
#include "server/watch/source.h"
#include "wire/error_body.h"
#include "wire/forms/public_form.h"

// On the threads of those who look: what the thread that serves has told becomes what is public.

namespace muster::server {
namespace {

using core::Look;
using core::Looked;

GroupView::Time wall_time(base::Instant at, Duration to_wall) {
  return GroupView::Time(
      std::chrono::floor<std::chrono::milliseconds>(at.time_since_epoch() + to_wall));
}

std::vector<RankRange> ranges_of(const std::vector<std::pair<int, int>>& pairs) {
  std::vector<RankRange> ranges;
  for (const auto& [first, last] : pairs) ranges.push_back({first, last});
  return ranges;
}

GroupView public_form(const core::GroupGlance& glance, Duration to_wall) {
  GroupView view;
  view.name_space = glance.name_space;
  view.name = glance.name;
  view.epoch = glance.epoch;
  view.world_size = static_cast<int>(glance.world_size);
  view.candidates = static_cast<int>(glance.candidates);
  view.state = glance.state;
  view.since = wall_time(glance.since, to_wall);
  for (const auto& [state, count] : glance.ranks)
    view.ranks.emplace_back(state, static_cast<int>(count));
  view.waits_for = ranges_of(glance.waits_for);
  view.waiting = ranges_of(glance.waiting);
  view.call = glance.call;
  view.round = glance.round;
  for (const auto& told : glance.told) {
    MemberInfo& member = view.told.emplace_back();
    member.rank = static_cast<int>(told.rank);
    member.process = {told.id, told.host, told.pid, told.label};
  }
  if (glance.failure_code == 0) return view;
  view.failure = wire::decode_error(glance.failure_code, glance.failure);
  view.failure->group = view.name;
  view.failure->epoch = view.epoch;
  return view;
}

/// Groups that have not changed stay the same objects.
std::vector<std::shared_ptr<const GroupView>> groups_of(const Seen& seen, const Seen* before,
                                                        const Overview* overview) {
  std::vector<std::shared_ptr<const GroupView>> views;
  views.reserve(seen.groups.size());
  const bool may_reuse =
      before != nullptr && overview != nullptr && before->to_wall == seen.to_wall;
  std::size_t old = 0;
  for (const core::GroupGlance& glance : seen.groups) {
    const auto is_before = [&glance](const core::GroupGlance& other) {
      return std::tie(other.name_space, other.name) < std::tie(glance.name_space, glance.name);
    };
    while (may_reuse && old < before->groups.size() && is_before(before->groups[old])) ++old;
    const bool is_same = may_reuse && old < before->groups.size() && before->groups[old] == glance;
    views.push_back(is_same ? overview->groups[old]
                            : std::make_shared<const GroupView>(public_form(glance, seen.to_wall)));
  }
  return views;
}

std::vector<LimitUse> limits_of(const Figures& figures) {
  const core::Snapshot& now = figures.engine.snapshot;
  return {
      {"memory_bytes_max", now.core.memory_bytes, figures.memory_bytes_max, "bytes"},
      {"memory_reserve", figures.engine.memory_reserve_used_bytes,
       figures.engine.memory_reserve_bytes, "bytes"},
      {"history_bytes_max", now.history_bytes, figures.engine.history_bytes_max, "bytes"},
      {"sessions_max", now.core.sessions, figures.sessions_max, "sessions"},
      {"connections_max", now.core.connections, figures.connections_max, "connections"},
      {"hello_connections_max", now.rim.newcomers, figures.hello_connections_max, "connections"},
      {"namespaces_max", now.name_spaces, figures.name_spaces_max, "namespaces"},
  };
}

void add_waits(Overview& overview, const core::Tallies& tallies) {
  for (std::size_t range = 0; range <= core::wait_bounds.size(); ++range) {
    std::uint64_t count = 0;
    for (const core::WaitTimes& waits : tallies.waits) count += waits.count(range);
    const bool has_end = range < core::wait_bounds.size();
    overview.waits.emplace_back(
        has_end ? std::optional<Duration>(core::wait_bounds[range]) : std::nullopt, count);
  }
  for (const core::WaitTimes& waits : tallies.waits)
    overview.waits_sum += Duration(static_cast<Duration::rep>(waits.sum_us()));
}

std::uint64_t operations_of(const core::Tallies& tallies) {
  std::uint64_t count = 0;
  for (std::size_t operation = 0; operation < wire::operations_count; ++operation) {
    for (std::size_t outcome = 0; outcome < core::outcomes_count; ++outcome)
      count += tallies.outcomes.of(operation, outcome);
  }
  return count;
}

Overview overview_of(const Seen& seen, const Seen* before, const Overview* old) {
  Overview overview;
  const Figures& figures = seen.figures;
  overview.number = seen.number;
  overview.now = wall_time(seen.taken, seen.to_wall);
  overview.started = wall_time(seen.started, seen.to_wall);
  overview.known_for = seen.taken - seen.started;
  overview.groups = groups_of(seen, before, old);
  overview.groups_count =
      std::max<std::uint64_t>(figures.engine.snapshot.core.groups, overview.groups.size());
  overview.limits = limits_of(figures);
  overview.sessions = figures.engine.snapshot.core.sessions;
  overview.connections = figures.engine.snapshot.core.connections;
  overview.keys = figures.engine.snapshot.core.keys;
  overview.operations = operations_of(figures.engine.tallies);
  add_waits(overview, figures.engine.tallies);
  return overview;
}

/// The entries of all pages.
template <class Info, class Reply, class Entry>
Result<std::vector<Info>> list_of(const Looked& looked, std::vector<Entry> Reply::*entries) {
  std::vector<Info> all;
  for (const std::string& page : looked.pages) {
    const auto reply = wire::decode_body<Reply>(page);
    if (!reply) return reply.error();
    for (const Entry& entry : (*reply).*entries) all.push_back(wire::public_form(entry));
  }
  return all;
}

Result<std::shared_ptr<const Looked>> look_at(Watch::Source& source, Look look, Duration wait_max) {
  auto looked = source.looks.latest(look, base::monotonic_now(), wait_max);
  if (looked == nullptr)
    return base::failure(ErrorCode::unavailable, "the server has not told it yet");
  if (looked->state == Looked::State::too_large)
    return base::failure(ErrorCode::too_large, "there is too much of it");
  if (looked->state == Looked::State::not_found) {
    const bool is_group = look.subject == Look::Subject::group;
    return base::failure(ErrorCode::not_found,
                         is_group ? "there is no such group" : "there is no such namespace");
  }
  return looked;
}

KeyPrefixes prefixes_of(const core::PrefixCounts& counts) {
  constexpr std::size_t told_max = 256;
  KeyPrefixes told;
  told.other_keys = counts.others().keys;
  told.other_value_bytes = counts.others().value_bytes;
  for (const auto& [prefix, sum] : counts.sums())
    told.prefixes.push_back({prefix, sum.keys, sum.value_bytes});
  std::stable_sort(told.prefixes.begin(), told.prefixes.end(), [](const auto& a, const auto& b) {
    return std::tie(a.value_bytes, a.keys) > std::tie(b.value_bytes, b.keys);
  });
  while (told.prefixes.size() > told_max) {
    told.other_keys += told.prefixes.back().keys;
    told.other_value_bytes += told.prefixes.back().value_bytes;
    told.prefixes.pop_back();
  }
  return told;
}

}  // namespace

void EventBook::add(const core::History::Change& change, base::Instant taken, Duration to_wall) {
  if (change.number <= last_change_) return;  // it came before
  last_change_ = change.number;
  const auto reply = wire::decode_body<wire::HistoryReply>(change.body);
  if (!reply || reply->records.size() != 1) return;
  WatchedEvent event{change.number, change.name_space, wall_time(change.first, to_wall),
                     wire::public_form(reply->records.front())};
  event.event.age = taken - change.first;
  const std::uint64_t serial = event.event.serial;
  const auto old = change_of_serial_.find(serial);
  if (old != change_of_serial_.end()) drop(by_change_.find(old->second));
  const std::uint64_t bytes = sizeof event + change.body.size() * 2 + change.name_space.size();
  by_change_.emplace(change.number,
                     Entry{std::make_shared<const WatchedEvent>(std::move(event)), bytes});
  change_of_serial_[serial] = change.number;
  bytes_ += bytes;
  while (bytes_ > bytes_max) drop(by_change_.begin());
}

void EventBook::drop(std::map<std::uint64_t, Entry>::iterator entry) {
  bytes_ -= entry->second.bytes;
  change_of_serial_.erase(entry->second.event->event.serial);
  by_change_.erase(entry);
}

std::vector<std::shared_ptr<const WatchedEvent>> EventBook::after(std::uint64_t change,
                                                                  std::size_t count_max) const {
  std::vector<std::shared_ptr<const WatchedEvent>> events;
  for (auto next = by_change_.rbegin(); next != by_change_.rend() && next->first > change; ++next) {
    if (events.size() == count_max) break;
    events.push_back(next->second.event);
  }
  std::reverse(events.begin(), events.end());
  return events;
}

}  // namespace muster::server

MUSTER_BEGIN_NAMESPACE

using server::look_at;
using Subject = core::Look::Subject;

Watch::Watch(std::shared_ptr<Source> source) : source_(std::move(source)) {}

std::shared_ptr<const Overview> Watch::overview(Duration wait_max) const {
  const auto seen = wait_max > Duration::zero() ? source_->publisher.latest(wait_max)
                                                : source_->publisher.latest();
  if (seen == nullptr) return nullptr;
  const std::lock_guard lock(source_->mutex);
  if (source_->seen != nullptr && source_->seen->number >= seen->number) return source_->overview;
  for (const auto& change : seen->changes) source_->events.add(change, seen->taken, seen->to_wall);
  auto overview = std::make_shared<Overview>(
      server::overview_of(*seen, source_->seen.get(), source_->overview.get()));
  overview->last_change = source_->events.last_change();
  source_->known_change = source_->events.last_change();
  source_->seen = seen;
  source_->overview = std::move(overview);
  return source_->overview;
}

std::vector<std::shared_ptr<const WatchedEvent>> Watch::events(std::uint64_t after_change,
                                                               std::size_t count_max) const {
  const std::lock_guard lock(source_->mutex);
  return source_->events.after(after_change, count_max);
}

Result<std::vector<NamespaceInfo>> Watch::namespaces(Duration wait_max) const {
  const auto looked = look_at(*source_, {Subject::name_spaces, {}, {}, 0}, wait_max);
  if (!looked) return looked.error();
  return server::list_of<NamespaceInfo>(**looked, &wire::NameSpacesReply::name_spaces);
}

Result<std::vector<SessionInfo>> Watch::sessions(std::string_view name_space,
                                                 Duration wait_max) const {
  const auto looked =
      look_at(*source_, {Subject::sessions, std::string(name_space), {}, 0}, wait_max);
  if (!looked) return looked.error();
  return server::list_of<SessionInfo>(**looked, &wire::SessionsReply::sessions);
}

Result<std::vector<GroupInfo>> Watch::groups(std::string_view name_space, Duration wait_max) const {
  const auto looked =
      look_at(*source_, {Subject::groups, std::string(name_space), {}, 0}, wait_max);
  if (!looked) return looked.error();
  return server::list_of<GroupInfo>(**looked, &wire::GroupsReply::groups);
}

Result<std::vector<std::pair<std::string, GroupInfo>>> Watch::all_groups(Duration wait_max) const {
  const auto looked = look_at(*source_, {Subject::all_groups, {}, {}, 0}, wait_max);
  if (!looked) return looked.error();
  std::vector<std::pair<std::string, GroupInfo>> all;
  for (std::size_t index = 0; index < (*looked)->pages.size(); ++index) {
    const auto reply = wire::decode_body<wire::GroupsReply>((*looked)->pages[index]);
    if (!reply) return reply.error();
    for (const wire::GroupEntry& entry : reply->groups)
      all.emplace_back((*looked)->names[index], wire::public_form(entry));
  }
  return all;
}

Result<std::vector<WaiterInfo>> Watch::waiters(std::string_view name_space,
                                               Duration wait_max) const {
  const auto looked =
      look_at(*source_, {Subject::waiters, std::string(name_space), {}, 0}, wait_max);
  if (!looked) return looked.error();
  return server::list_of<WaiterInfo>(**looked, &wire::WaitersReply::waiters);
}

Result<GroupReport> Watch::group(std::string_view name_space, std::string_view name,
                                 Duration wait_max) const {
  const auto looked =
      look_at(*source_, {Subject::group, std::string(name_space), std::string(name), 0}, wait_max);
  if (!looked) return looked.error();
  const auto reply = wire::decode_body<wire::InspectGroupReply>((*looked)->pages.front());
  if (!reply) return reply.error();
  return wire::public_form(*reply, name);
}

Result<std::vector<GroupReport>> Watch::waiting_groups(std::string_view name_space,
                                                       Duration wait_max) const {
  const auto looked =
      look_at(*source_, {Subject::waiting_groups, std::string(name_space), {}, 0}, wait_max);
  if (!looked) return looked.error();
  std::vector<GroupReport> reports;
  for (std::size_t index = 0; index < (*looked)->pages.size(); ++index) {
    const auto reply = wire::decode_body<wire::InspectGroupReply>((*looked)->pages[index]);
    if (!reply) return reply.error();
    reports.push_back(wire::public_form(*reply, (*looked)->names[index]));
  }
  return reports;
}

Result<History> Watch::history(std::string_view name_space, std::string_view group,
                               std::uint64_t after, Duration wait_max) const {
  const auto looked = look_at(
      *source_, {Subject::history, std::string(name_space), std::string(group), after}, wait_max);
  if (!looked) return looked.error();
  History history;
  for (const std::string& page : (*looked)->pages) {
    const auto reply = wire::decode_body<wire::HistoryReply>(page);
    if (!reply) return reply.error();
    history.forgotten = reply->forgotten;
    history.known_for = reply->known_for;
    for (const auto& record : reply->records) history.events.push_back(wire::public_form(record));
  }
  return history;
}

Result<KeyPrefixes> Watch::prefixes(std::string_view name_space, int slashes_max,
                                    Duration wait_max) const {
  const auto slashes = static_cast<std::uint64_t>(std::clamp(slashes_max, 1, 4));
  const auto looked =
      look_at(*source_, {Subject::prefixes, std::string(name_space), {}, slashes}, wait_max);
  if (!looked) return looked.error();
  return server::prefixes_of((*looked)->prefixes);
}

MUSTER_END_NAMESPACE
