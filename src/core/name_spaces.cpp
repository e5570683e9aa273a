#include "core/name_spaces.h"

#include <algorithm>
#include <utility>

#include "core/session/failure.h"

// Life of a namespace: made with its first session -> idle: the last one has gone -> dropped: there
// is nothing in it, or an operator drops it with its keys, or it has been idle for too long. Then
// nobody finds it any more, and its place is free -> its keys are removed in pieces -> it is
// deleted when nothing of it is on its way to somebody.
//
// A namespace with an idle lifetime of its own is that of a run. When none of the run's sessions is
// connected, either one of them resumes, and the run goes on, or all of them end. Newcomers wait
// until it is known which: they are refused as `busy`, and their clients try again.

namespace muster::core {
namespace {

constexpr std::size_t swept_at_a_time = 16;
constexpr std::size_t swept_per_drop = 2;  ///< so that no more gather than there are replies
/// Clients that wait for the end of a run try again more often.
constexpr Duration newcomer_again_within = std::chrono::seconds(3);
/// What does not fit waits longer.
constexpr std::size_t newcomers_max = 16384;

bool is_of_another_run(const NameSpace& name_space, const wire::ClientHello& hello) {
  const std::string& name = name_space.run.name;
  return !name.empty() && !hello.run.empty() && hello.run != name;
}

std::string describe_run(const NameSpace& name_space) {
  const std::string name =
      name_space.run.name.empty() ? "" : quoted_text(name_space.run.name) + " ";
  return "run " + name + "in namespace " + quoted_text(name_space.name);
}

/// The text of a refusal, which has little room. It names a process of the newcomer's tenant.
std::string not_over(const NameSpace& name_space, const Hello& event) {
  const std::uint32_t count = name_space.sessions;
  std::string text = describe_run(name_space) + " is not over: " + std::to_string(count) +
                     (count == 1 ? " session" : " sessions");
  const std::string_view tenant = event.grant ? event.grant->identity.tenant : std::string_view();
  for (const auto& [id, session] : name_space.sessions_by_id) {
    if (session->tenant() != tenant) continue;
    return text + ", the first of " + describe(session->process);
  }
  return text;
}

/// Whether it is over with its last session.
bool goes_at_once(const NameSpace& name_space) {
  if (name_space.idle_lifetime == Duration::zero()) return true;
  const bool is_remembered = name_space.idle_lifetime && !name_space.run.name.empty();
  return name_space.is_empty() && !is_remembered;
}

/// Whether nothing of it is left, also not on its way to somebody.
bool is_over(NameSpace& name_space, Units& units) {
  if (!name_space.is_empty()) return false;
  name_space.accounts.sweep(units, Accounts::count_max);
  return name_space.accounts.size() == 0 && name_space.quota.used_bytes() == 0;
}

}  // namespace

void DroppedNameSpaces::add(std::unique_ptr<NameSpace> name_space) {
  sweep(swept_per_drop);
  name_space->table.drop();
  name_space->waiting.leave();
  with_keys_.push_back(std::move(name_space));
  const int work_max = with_keys_.size() == 1 ? effects_.work_left() : 0;
  if (work(work_max) >= work_max) effects_.backlog().add(*this);
}

int DroppedNameSpaces::work(int work_max) {
  int done = 0;
  while (done < work_max && !with_keys_.empty()) {
    const int left = work_max - done;
    const int removed = with_keys_.front()->table.remove_dropped(left);
    done += removed;
    if (removed == left) break;
    ++done;
    std::unique_ptr<NameSpace> emptied = std::move(with_keys_.front());
    with_keys_.pop_front();
    if (!is_over(*emptied, units_)) without_keys_.push_back(std::move(emptied));
  }
  return done;
}

void DroppedNameSpaces::sweep(std::size_t count) {
  for (count = std::min(count, without_keys_.size()); count > 0; --count) {
    std::unique_ptr<NameSpace> emptied = std::move(without_keys_.front());
    without_keys_.pop_front();
    if (!is_over(*emptied, units_)) without_keys_.push_back(std::move(emptied));
  }
}

void DroppedNameSpaces::clear() {
  with_keys_.clear();
  without_keys_.clear();
}

NameSpace* NameSpaces::find(std::string_view name) const {
  const auto found = name_spaces_.find(name);
  return found == name_spaces_.end() ? nullptr : found->second.get();
}

const NameSpace* NameSpaces::after(const std::optional<std::string_view>& name) const {
  const auto next = name ? name_spaces_.upper_bound(*name) : name_spaces_.begin();
  return next == name_spaces_.end() ? nullptr : next->second.get();
}

NameSpace* NameSpaces::find_for(const wire::ClientHello& hello) {
  NameSpace* const found = find(hello.name_space);
  if (found == nullptr || found->sessions != 0 || !found->idle_lifetime) return found;
  const bool is_due = services_.now() - found->idle_since >= *found->idle_lifetime;
  if (!is_due && !is_of_another_run(*found, hello)) return found;
  drop(*found);
  return nullptr;
}

std::optional<Error> NameSpaces::refusal_to_enter(NameSpace& name_space, const Hello& event) {
  const wire::ClientHello& hello = event.hello;
  const bool is_of_run = event.guest || hello.idle_lifetime || !hello.run.empty();
  if (!is_of_run || !name_space.idle_lifetime) return std::nullopt;
  const Run& run = name_space.run;
  const Instant now = services_.now();
  if (name_space.sessions == 0) {
    if (hello.run.empty() || hello.run != run.name) return std::nullopt;
    const Duration left = *name_space.idle_lifetime - (now - name_space.idle_since);
    return failure(ErrorCode::closed, describe_run(name_space) + " has ended; for " +
                                          base::rounded(left) + " only another one may begin");
  }
  const bool is_ending = run.connected == 0 && name_space.idle_lifetime == Duration::zero();
  if (!is_ending && !is_of_another_run(name_space, hello)) return std::nullopt;
  const bool has_waited = waited(hello) >= services_.options().limits.session_timeout;
  const bool goes_on = run.connected != 0 && has_waited;
  if (goes_on) newcomers_.erase({hello.name_space, hello.process.id});
  return failure(goes_on ? ErrorCode::closed : ErrorCode::busy, not_over(name_space, event));
}

bool NameSpaces::is_past(const Newcomer& newcomer) const {
  return services_.now() - newcomer.refused > newcomer_again_within;
}

Duration NameSpaces::waited(const wire::ClientHello& hello) {
  const Instant now = services_.now();
  std::pair key{hello.name_space, hello.process.id};
  auto found = newcomers_.find(key);
  if (found == newcomers_.end()) {
    if (newcomers_.size() >= newcomers_max) return Duration::zero();
    found = newcomers_.emplace(std::move(key), Newcomer{now, now}).first;
  }
  Newcomer& newcomer = found->second;
  if (is_past(newcomer)) newcomer.since = now;
  newcomer.refused = now;
  return now - newcomer.since;
}

void NameSpaces::entered(NameSpace& name_space, const Hello& event) {
  const std::optional<Duration> lifetime =
      event.guest ? event.guest->idle_lifetime : event.hello.idle_lifetime;
  std::optional<Duration>& longest = name_space.idle_lifetime;
  if (lifetime) longest = std::max(longest.value_or(Duration::zero()), *lifetime);
  if (name_space.run.name.empty()) name_space.run.name = event.hello.run;
}

std::optional<Error> NameSpaces::refusal_to_make(const std::string& name, const Unit& unit) {
  if (name.empty()) return std::nullopt;  // the default one has a place of its own
  const std::string advice = "; musterctl namespaces --drop frees unused ones";
  const Options& options = services_.options();
  if (unit.name_spaces_count >= options.name_spaces.per_unit_max) {
    return full(services_.counted().tallies, Limit::name_spaces_per_unit,
                unit.name + " has made namespaces_per_address_max namespaces" + advice,
                unit.name_spaces_count, options.name_spaces.per_unit_max);
  }
  const std::size_t count = name_spaces_.size() - name_spaces_.count(std::string_view());
  const SharedLimit limit{options.name_spaces.count_max};
  if (limit.has_place(count, unit.name_spaces_count, units_.size())) return std::nullopt;
  return full(services_.counted().tallies, Limit::name_spaces,
              "the server is full: it has reached its namespaces_max" + advice, count,
              limit.places_max);
}

NameSpace& NameSpaces::make(const std::string& name, Unit& unit) {
  Unit* const maker = name.empty() ? nullptr : &unit;
  auto made = std::make_unique<NameSpace>(name, maker, services_, waiting_names_, history_);
  NameSpace& name_space = *name_spaces_.emplace(name, std::move(made)).first->second;
  if (maker != nullptr) ++maker->name_spaces_count;
  return name_space;
}

void NameSpaces::session_gone(NameSpace& name_space, Account& account) {
  name_space.accounts.drop_if_over(units_, account);
  if (--name_space.sessions != 0) return;
  if (goes_at_once(name_space)) {
    drop(name_space);
  } else {
    idle_.append(name_space.among_idle);
  }
}

void NameSpaces::change_memory_limit(std::uint64_t bytes_max) {
  for (const auto& [name, name_space] : name_spaces_)
    name_space->quota.set_limit(bytes_max, Lowering::with_use);
}

void NameSpaces::sweep() {
  for (std::size_t count = swept_at_a_time; count > 0 && !idle_.empty(); --count) {
    NameSpace& name_space = idle_.first();
    name_space.among_idle.leave();
    if (name_space.sessions != 0) continue;
    const Duration idle = services_.now() - name_space.idle_since;
    const Duration lifetime =
        name_space.idle_lifetime.value_or(services_.options().name_spaces.idle_lifetime);
    const bool is_due = lifetime > Duration::zero() && idle >= lifetime;
    if (is_due || goes_at_once(name_space)) {
      drop(name_space);
    } else {
      idle_.append(name_space.among_idle);
    }
  }
  if (services_.now() - newcomers_swept_ > newcomer_again_within) {
    newcomers_swept_ = services_.now();
    std::erase_if(newcomers_, [&](const auto& each) { return is_past(each.second); });
  }
  sweep_accounts();
  dropped_.sweep(swept_at_a_time);
}

/// Of one namespace: what is left of a session that has gone may have ended in pieces.
void NameSpaces::sweep_accounts() {
  if (name_spaces_.empty()) return;
  auto next = name_spaces_.upper_bound(swept_);
  if (next == name_spaces_.end()) next = name_spaces_.begin();
  next->second->accounts.sweep(units_, swept_at_a_time);
  swept_ = next->first;
}

std::uint64_t NameSpaces::drop(NameSpace& name_space) {
  const std::uint64_t key_count = name_space.table.key_count();
  name_space.among_idle.leave();
  if (Unit* const maker = std::exchange(name_space.maker, nullptr)) {
    --maker->name_spaces_count;
    units_.drop_if_over(*maker);
  }
  const auto found = name_spaces_.find(name_space.name);
  dropped_.add(std::move(found->second));
  name_spaces_.erase(found);
  return key_count;
}

void NameSpaces::note_refused(const std::string& name_space, std::string_view why) {
  constexpr std::size_t bytes_max = 256;
  constexpr std::size_t count_max = 64;
  refused_guests_.push_back({name_space, services_.now(), std::string(why.substr(0, bytes_max))});
  if (refused_guests_.size() > count_max) refused_guests_.pop_front();
}

void NameSpaces::clear() {
  dropped_.clear();
  newcomers_.clear();
  name_spaces_.clear();
}

}  // namespace muster::core
