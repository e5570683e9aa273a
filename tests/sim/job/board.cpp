#include "board.h"

#include <algorithm>

namespace muster::sim::job {

Board::Entry* Board::find(const std::string& key) {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return nullptr;
  if (found->second.expires > scheduler_.now()) return &found->second;
  keys_.erase(found);
  return nullptr;
}

void Board::set(const std::string& key, const std::string& value, Instant expires) {
  keys_[key] = {value, expires};
  changed(key, value);
  const auto waiting = waiters_.find(key);
  if (waiting == waiters_.end()) return;
  const std::vector<Waiter> told = std::move(waiting->second);
  waiters_.erase(waiting);
  bool is_taken = false;
  for (const Waiter& waiter : told) {
    if (waiter.session->is_over) continue;
    if (waiter.takes && is_taken) {
      waiters_[key].push_back(waiter);
      continue;
    }
    is_taken = is_taken || waiter.takes;
    waiter.answer(value);
  }
  if (is_taken) remove(key);
}

std::optional<std::string> Board::set_once(const std::string& key, const std::string& value,
                                           std::optional<Duration> lifetime) {
  if (const Entry* there = find(key)) return there->value;
  set(key, value, lifetime ? scheduler_.now() + *lifetime : base::far_future);
  return {};
}

void Board::bind(Session& session, const std::string& key, const std::string& value) {
  session.bound_key = key;
  set(key, value, base::far_future);
}

bool Board::change(const std::string& key, const std::string& from, const std::string& to,
                   Duration lifetime) {
  Entry* const there = find(key);
  if (there == nullptr || there->value != from) return false;
  *there = {to, scheduler_.now() + lifetime};
  return true;
}

std::int64_t Board::add_one(const std::string& key) {
  const Entry* const there = find(key);
  const std::int64_t sum = 1 + (there == nullptr ? 0 : std::stoll(there->value));
  set(key, std::to_string(sum), base::far_future);
  return sum;
}

void Board::await(Session& session, const std::string& key, Answer answer) {
  if (const Entry* there = find(key)) return answer(there->value);
  waiters_[key].push_back({&session, std::move(answer)});
}

void Board::take(Session& session, const std::string& key, Answer answer) {
  const Entry* const there = find(key);
  if (there == nullptr) {
    waiters_[key].push_back({&session, std::move(answer), true});
    return;
  }
  const std::string value = there->value;
  remove(key);
  answer(value);
}

std::optional<std::string> Board::value_of(const std::string& key) {
  const Entry* const there = find(key);
  if (there == nullptr) return {};
  return there->value;
}

std::vector<std::string> Board::list(const std::string& prefix) {
  std::vector<std::string> found;
  for (auto each = keys_.lower_bound(prefix); each != keys_.end(); ++each) {
    if (each->first.compare(0, prefix.size(), prefix) != 0) break;
    if (each->second.expires > scheduler_.now()) found.push_back(each->first);
  }
  return found;
}

void Board::remove(const std::string& key) {
  if (keys_.erase(key) > 0) changed(key, "");
}

void Board::join(Session& session, const std::string& name, int rank, int size, Duration timeout,
                 Tell tell) {
  Group& group = groups_[name];
  group.size = size;
  group.members[rank] = {&session, std::move(tell)};
  if (static_cast<int>(group.members.size()) == size) {
    group.is_formed = true;
    for (const auto& [other, member] : group.members) member.tell({GroupNews::Kind::formed, {}});
    return;
  }
  scheduler_.after(timeout, std::function<void()>(
                                [this, name, rank, who = &session] { give_up(name, rank, *who); }));
}

/// The time of one who has joined is up.
void Board::give_up(const std::string& name, int rank, const Session& session) {
  Group& group = groups_[name];
  const auto member = group.members.find(rank);
  if (is_dead_ || group.is_formed || member == group.members.end()) return;
  if (member->second.session != &session) return;
  GroupNews news{GroupNews::Kind::not_come, {}};
  for (int other = 0; other < group.size; ++other)
    if (group.members.count(other) == 0) news.ranks.push_back(other);
  const Tell tell = std::move(member->second.tell);
  group.members.erase(member);
  tell(news);
}

void Board::leave(Session& session, const std::string& name) {
  const auto group = groups_.find(name);
  if (group != groups_.end()) take_out(session, group->second, GroupNews::Kind::left);
}

void Board::take_out(Session& session, Group& group, GroupNews::Kind how) {
  const auto is_it = [&](const auto& each) { return each.second.session == &session; };
  const auto member = std::find_if(group.members.begin(), group.members.end(), is_it);
  if (member == group.members.end()) return;
  const int rank = member->first;
  group.members.erase(member);
  if (!group.is_formed) return;
  group.gone.push_back(rank);
  for (const auto& [other, left] : group.members) left.tell({how, group.gone});
}

void Board::end(Session& session) {
  if (session.is_over || is_dead_) return;
  session.is_over = true;
  if (!session.bound_key.empty()) remove(session.bound_key);
  for (auto& [name, group] : groups_) take_out(session, group, GroupNews::Kind::lost);
}

}  // namespace muster::sim::job
