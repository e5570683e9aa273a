#include "process.h"

#include <algorithm>

#include "group_work.h"
#include "store_work.h"
#include "stranger_work.h"
#include "watch_work.h"

namespace muster::sim {

using namespace std::chrono_literals;

Process::Process(const Identity& identity, std::uint32_t slot, Town& town, Clock clock)
    : identity_(identity),
      slot_(slot),
      town_(town),
      client_(identity, town.scheduler, town.network, town.server, clock),
      store_work_(std::make_unique<StoreWork>(*this)) {
  client_.violated = [this](const std::string& what) {
    town_.oracle.problem(town_.oracle.life(number()).name + ": " + what);
  };
  client_.notified = [this](const wire::Event& event) { told(event); };
  client_.resumed = [this] {
    const Instant now = town_.scheduler.now();
    auto& held = town_.oracle.life(number()).held;
    std::erase_if(held, [now](const auto& each) { return each.second <= now; });
  };
  if (identity.is_stranger) {
    stranger_work_ = std::make_unique<StrangerWork>(*this);
    return;
  }
  if (identity.role == wire::Role::observer) {
    watch_work_ = std::make_unique<WatchWork>(*this);
    return;
  }
  for (const GroupPlan& group : town.plan.groups[identity.name_space.empty() ? 0 : 1]) {
    const auto rank = std::find(group.slots.begin(), group.slots.end(), slot);
    if (rank == group.slots.end() || !town.plan.has_group_work) continue;
    group_works_.push_back(std::make_unique<GroupWork>(
        *this, group, static_cast<std::uint32_t>(rank - group.slots.begin())));
  }
}

Process::~Process() = default;

void Process::begin() {
  Life life;
  life.client = number();
  life.slot = slot_;
  life.process = id_of(identity_);
  life.pid = identity_.process;
  life.name_space = identity_.name_space;
  life.role = identity_.role;
  life.is_stranger = identity_.is_stranger;
  town_.oracle.born(std::move(life));
  if (const auto until = town_.registry.revoked_until(number())) {
    town_.oracle.revoked(number(), *until);
  }
  client_.logged = [this](const std::string& line) {
    town_.trace.note(town_.scheduler.now(), town_.oracle.life(number()).name, 7,
                     [&] { return "  " + line; });
  };
  client_.open();
  later(town_.random.between(0s, 300ms), [this] { reopen_if_over(); });
  if (stranger_work_ != nullptr) return stranger_work_->begin();
  store_work_->begin();
  for (const auto& work : group_works_) work->begin();
  if (watch_work_) watch_work_->begin();
}

void Process::set_twin(Process& twin) {
  twin_ = &twin;
  twin.twin_ = this;
}

std::vector<Process*> Process::parts() {
  if (twin_ == nullptr || twin_->is_over()) return {this};
  return {this, twin_};
}

void Process::later(Duration delay, std::function<void()> what) {
  town_.scheduler.after(delay, [this, what = std::move(what)]() mutable {
    if (is_over()) return;
    if (client_.is_stopped()) return later(50ms, std::move(what));
    what();
  });
}

void Process::die(Client::Death death) {
  if (!is_alive_) return;
  is_alive_ = false;
  client_.die(death);
  town_.oracle.died(number());
  town_.trace.note(town_.scheduler.now(), town_.oracle.life(number()).name, 1, [&] {
    return death == Client::Death::of_process ? "is killed" : "is gone with its machine";
  });
  if (twin_ != nullptr) twin_->die(death);
}

void Process::told(const wire::Event& event) {
  town_.oracle.told(number(), event.error, client_.incarnation());
  if (event.kind == wire::EventKind::session_ended) return session_ended();
  for (const auto& work : group_works_) work->told(event);
}

void Process::session_ended() {
  for (const auto& work : group_works_) work->session_ended();
}

/// What an application does when its session is over: it begins another one.
void Process::reopen_if_over() {
  const Error* why = client_.failure();
  const bool is_session_over =
      why != nullptr &&
      (why->code == ErrorCode::session_expired || why->code == ErrorCode::server_restarted ||
       why->code == ErrorCode::fenced || why->code == ErrorCode::permission_denied);
  if (is_session_over) {
    session_ended();
    client_.reopen();
  }
  later(town_.random.between(100ms, 500ms), [this] { reopen_if_over(); });
}

void Process::close() { leave_groups(0); }

void Process::leave_groups(std::size_t first) {
  if (first == group_works_.size()) return say_goodbye();
  group_works_[first]->leave([this, first] { leave_groups(first + 1); });
}

void Process::say_goodbye() {
  if (is_over()) return;
  town_.oracle.life(number()).said_goodbye = true;
  client_.close();
  has_closed_ = true;
}

std::uint64_t Process::ask(Ask ask, const wire::RequestBody& body, Use use,
                           protocol::Receipt receipt) {
  ask.client = number();
  ask.operation = wire::operation_of(body);
  ask.incarnation = client_.incarnation();
  if (const auto* join = std::get_if<wire::Join>(&body)) {
    ask.rank = join->rank;
    ask.size = join->world_size;
    ask.is_standby = join->standby;
  } else if (const auto* regroup = std::get_if<wire::Regroup>(&body)) {
    ask.size = regroup->new_size;
  }
  const std::uint64_t number = town_.oracle.begun(ask);
  const auto call = client_.call(
      body, ask.timeout,
      [this, number, use = std::move(use)](const Reply& reply, protocol::Fate fate) {
        calls_.erase(number);
        town_.oracle.ended(number, reply ? nullptr : &reply.error(), fate, client_.incarnation());
        use(reply, fate);
      },
      receipt);
  if (town_.oracle.is_pending(number)) calls_[number] = call;
  return number;
}

void Process::leave(std::uint64_t epoch, std::function<void(bool is_done)> then) {
  town_.trace.note(town_.scheduler.now(), town_.oracle.life(number()).name, 3,
                   [&] { return "destroys its handle of epoch " + std::to_string(epoch); });
  client_.call_lasting(
      wire::Leave{epoch},
      [then = std::move(then)](const Reply& reply, protocol::Fate) { then(reply.has_value()); });
}

std::uint64_t Process::joins_made(std::string_view group) const {
  std::uint64_t count = 0;
  for (const auto& work : group_works_) {
    if (work->group_name() == group) count += work->joins_made();
  }
  return count;
}

bool Process::may_be_in(std::string_view group) const {
  return std::any_of(group_works_.begin(), group_works_.end(), [&](const auto& work) {
    return work->group_name() == group && work->may_be_member();
  });
}

void Process::cancel(std::uint64_t number) {
  const auto found = calls_.find(number);
  if (found == calls_.end() || !can_run()) return;
  town_.oracle.cancels(number);
  client_.cancel(found->second);
}

void Process::take_back(std::uint64_t number) {
  const auto found = calls_.find(number);
  if (found == calls_.end() || !can_run()) return;
  town_.oracle.cancels(number);
  Ask about;
  about.what = "cancel take";
  about.timeout = std::chrono::seconds(2);
  // The server answers in order: the take has ended when this has.
  ask(std::move(about), wire::CancelTake{found->second},
      [this, number](const Reply& reply, protocol::Fate) {
        if (!reply || calls_.find(number) == calls_.end()) return;
        town_.oracle.problem("a take that was taken back waits on");
      });
}

}  // namespace muster::sim
