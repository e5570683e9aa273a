#include "process.h"

#include "group_work.h"
#include "store_work.h"

namespace muster::sim {

using namespace std::chrono_literals;

Process::Process(std::uint64_t number, std::uint32_t slot, Town& town, Clock clock)
    : number_(number),
      slot_(slot),
      town_(town),
      client_(number, town.scheduler, town.network, town.server, clock),
      store_work_(std::make_unique<StoreWork>(*this)),
      group_work_(std::make_unique<GroupWork>(*this)) {
  client_.violated = [this](const std::string& what) {
    town_.oracle.problem(town_.oracle.life(number_).name + ": " + what);
  };
  client_.notified = [this](const wire::Event& event) { told(event); };
}

Process::~Process() = default;

void Process::begin() {
  town_.oracle.born(number_, slot_, client_.process_id());
  client_.logged = [this](const std::string& line) {
    town_.trace.note(town_.scheduler.now(), town_.oracle.life(number_).name, 7,
                     [&] { return "  " + line; });
  };
  client_.open();
  later(town_.random.between(0s, 300ms), [this] { reopen_if_over(); });
  store_work_->begin();
  group_work_->begin();
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
  town_.oracle.died(number_);
  town_.trace.note(town_.scheduler.now(), town_.oracle.life(number_).name, 1, [&] {
    return death == Client::Death::of_process ? "is killed" : "is gone with its machine";
  });
}

void Process::told(const wire::Event& event) {
  town_.oracle.told(number_, event.error);
  if (event.kind == wire::EventKind::session_ended) group_work_->session_ended();
}

/// What an application does when its session is over: it begins another one.
void Process::reopen_if_over() {
  const Error* why = client_.failure();
  const bool is_session_over = why != nullptr && (why->code == ErrorCode::session_expired ||
                                                  why->code == ErrorCode::server_restarted ||
                                                  why->code == ErrorCode::fenced);
  if (is_session_over) {
    group_work_->session_ended();
    client_.reopen();
  }
  later(town_.random.between(100ms, 500ms), [this] { reopen_if_over(); });
}

void Process::close() {
  group_work_->leave([this] { say_goodbye(); });
}

void Process::say_goodbye() {
  if (is_over()) return;
  town_.oracle.life(number_).said_goodbye = true;
  client_.close();
  has_closed_ = true;
}

std::uint64_t Process::ask(Ask ask, const wire::RequestBody& body, Use use) {
  ask.client = number_;
  ask.operation = wire::operation_of(body);
  ask.incarnation = client_.incarnation();
  const std::uint64_t number = town_.oracle.begun(ask);
  const auto call = client_.call(
      body, ask.timeout,
      [this, number, use = std::move(use)](const Reply& reply, protocol::Fate fate) {
        calls_.erase(number);
        town_.oracle.ended(number, reply ? nullptr : &reply.error(), fate, client_.incarnation());
        use(reply, fate);
      });
  if (town_.oracle.is_pending(number)) calls_[number] = call;
  return number;
}

void Process::cancel(std::uint64_t number) {
  const auto found = calls_.find(number);
  if (found == calls_.end() || !can_run()) return;
  town_.oracle.cancels(number);
  client_.cancel(found->second);
}

}  // namespace muster::sim
