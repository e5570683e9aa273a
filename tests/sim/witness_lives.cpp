#include <algorithm>

#include "oracle.h"
#include "witness.h"

// Who is gone, by the session timeout and the grace at the latest, and who has to hear of it.

namespace muster::sim {
namespace {

using namespace std::chrono_literals;
using wire::Operation;

/// So long some losses are gathered before all are told of them; and a look of the rim.
constexpr Duration gathered_max = 400ms;
/// What a pause of the server's process may add where it lies between: it sees it by its own looks.
constexpr Duration pause_error = 1s;

}  // namespace

void Witness::heard(Connection connection) {
  Session* const session = session_on(connection);
  if (session == nullptr) return;
  session->heard = oracle_.running();
  session->heard_at = oracle_.now();
  session->ended.reset();
  next_look_ = std::min(next_look_, due(*session));
}

/// A session ends in three ways: by its goodbye, its client is told why, or it is not connected.
void Witness::closes(Connection connection) {
  const Session* const session = session_on(connection);
  if (session == nullptr) return;
  if (session->id != resuming_) problem("a client's connection is closed and it is not told why");
  closed(connection);
}

/// A session that never asked for anything is over with its connection, but may come back.
void Witness::put_by(const Session& session) {
  blanks_[session.id] = due(session) + pause_error;
  forget(session.id);
}

bool Witness::comes_back_blank(std::uint64_t session) {
  const auto blank = blanks_.find(session);
  if (blank == blanks_.end()) return false;
  const bool is_in_time = oracle_.running() <= blank->second;
  blanks_.erase(blank);
  return is_in_time;
}

/// When it must be over, unless it is heard before: S and G, and the slack.
Duration Witness::due(const Session& session) const {
  const wire::ServerLimits& limits = options_.limits;
  Duration last = session.heard + oracle_.longer(limits.session_timeout);
  if (session.ended) last = std::min(last, *session.ended + oracle_.longer(limits.grace));
  return last + limits.slack;
}

void Witness::check_lives() {
  const Duration running = oracle_.running();
  std::vector<std::uint64_t> over;
  next_look_ = Duration::max();
  for (const auto& [id, session] : sessions_) {
    Duration last = due(session);
    if (!oracle_.server_is_calm(session.heard_at, oracle_.now())) last += pause_error;
    if (last <= running) {
      over.push_back(id);
    } else {
      next_look_ = std::min(next_look_, last);
    }
  }
  if (session_count_ + over.size() > sessions_.size()) {
    return problem("a session outlives its time");
  }
  for (const std::uint64_t id : over) is_over(id);
  check_losses();
}

/// The groups that it may have left before, unheard.
std::set<std::string> Witness::may_have_left(const Session& session) {
  std::set<std::string> groups = session.may_have_left;
  for (const auto& [request, asked] : session.asked) {
    groups.insert(asked.group);  // a join, which may have ended while it was away
  }
  return groups;
}

/// A session that ends without a goodbye.
void Witness::is_over(std::uint64_t session) {
  const std::set<std::string> unsure = may_have_left(sessions_.at(session));
  forget(session);
  for (const auto& [number, epoch] : epochs_) {
    const auto rank = rank_of(number, session);
    if (!rank || epoch.is_over || epoch.gone.count(*rank) != 0) continue;
    if (unsure.count(epoch.group) != 0) continue;
    epochs_.at(number).is_broken = true;
    is_gone(number, *rank);
    lost_.emplace_back(number, *rank);
  }
}

void Witness::leaves_all(const Session& session) {
  const std::set<std::string> unsure = may_have_left(session);
  for (const auto& [number, epoch] : epochs_) {
    if (unsure.count(epoch.group) == 0) leaves(session.id, number);
  }
}

void Witness::leaves(std::uint64_t session, std::uint64_t number) {
  const auto rank = rank_of(number, session);
  if (!rank) return;
  epochs_.at(number).left.insert(*rank);
  is_gone(number, *rank);
}

void Witness::is_gone(std::uint64_t number, std::uint32_t rank) {
  Epoch& epoch = epochs_.at(number);
  if (!epoch.gone.insert(rank).second || epoch.is_over) return;
  tellings_.push_back({oracle_.now() + gathered_max, number, rank});
  touched_groups_.insert(epoch.group);
}

void Witness::check_losses() {
  for (const auto& [number, rank] : std::exchange(lost_, {})) check_nobody_waits(number, rank);
}

/// Whether it goes in the event in hand, in which several may go, one after another: what the first
/// of them ends names that one.
bool Witness::goes_now(const Epoch& epoch, std::uint32_t rank) const {
  return std::any_of(lost_.begin(), lost_.end(), [&](const auto& each) {
    return each.second == rank && &epochs_.at(each.first) == &epoch;
  });
}

/// R2: all of whom it is known by then, not only the first.
void Witness::check_all_lost_are_named(const Epoch& epoch, const Error& error) {
  for (const std::uint32_t rank : epoch.gone) {
    if (epoch.left.count(rank) != 0 || goes_now(epoch, rank)) continue;
    const auto holds = [&](RankRange range) {
      return static_cast<int>(rank) >= range.first && static_cast<int>(rank) <= range.last;
    };
    if (std::any_of(error.rank_ranges.begin(), error.rank_ranges.end(), holds)) continue;
    return problem("rank_lost does not name rank " + std::to_string(rank));
  }
}

/// R4: what waits in its epoch, on connections that stand, has failed by now.
void Witness::check_nobody_waits(std::uint64_t number, std::uint32_t rank) {
  for (const auto& [id, session] : sessions_) {
    for (const auto& [request, asked] : session.asked) {
      const bool is_part = asked.operation == wire::operation<wire::CollectiveCall>;
      const bool waits = asked.is_open && asked.is_sure && asked.epoch == number &&
                         (is_part || asked.operation == wire::operation<wire::Receive>);
      if (!waits) continue;
      const auto round = rounds_.find({number, asked.round});
      // Who leaves a barrier last waits for the others.
      if (is_part && round->second.callers.size() >= epochs_.at(number).size) continue;
      return problem(std::string(wire::name_of(asked.operation)) + " waits although rank " +
                     std::to_string(rank) + " is lost");
    }
  }
}

void Witness::check_tellings() {
  while (!tellings_.empty() && tellings_.front().when <= oracle_.now()) {
    Telling telling = tellings_.front();
    tellings_.pop_front();
    if (oracle_.server_is_calm(telling.when - gathered_max, oracle_.now())) {
      check_telling(telling);
      continue;
    }
    telling.when = oracle_.now() + gathered_max;
    tellings_.push_back(telling);
  }
}

/// Each member that is there was told that the rank is gone. After a loss leaves are not told of.
void Witness::check_telling(const Telling& telling) {
  const Epoch& epoch = epochs_.at(telling.epoch);
  if (epoch.is_over || epoch.may_be_over) return;
  for (const auto& [rank, id] : epoch.sessions) {
    const auto session = sessions_.find(id);
    if (epoch.gone.count(rank) != 0 || session == sessions_.end()) continue;
    if (session->second.connection == 0) continue;
    if (may_have_left(session->second).count(epoch.group) != 0) continue;
    const auto told = epoch.told.find(id);
    if (told != epoch.told.end() && told->second.count(telling.rank) != 0) continue;
    if (epoch.left.count(telling.rank) != 0 && epoch.told_of_loss.count(id) != 0) continue;
    return problem("rank " + std::to_string(rank) + " of epoch " + std::to_string(telling.epoch) +
                   " was not told that rank " + std::to_string(telling.rank) + " is gone");
  }
}

}  // namespace muster::sim
