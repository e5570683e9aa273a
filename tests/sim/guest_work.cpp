#include "guest_work.h"

#include <utility>
#include <vector>

namespace muster::sim {
namespace {

using namespace std::chrono_literals;

/// Apart from those of processes.
constexpr std::uint64_t first_client = 1u << 20;

const std::string never_set = "/never";
const std::string long_key = "/long";

}  // namespace

GuestWork::GuestWork(std::uint32_t number, Town& town, GuestModel& model)
    : client_(first_client + number),
      name_space_(number % 3 == 2 ? "other job" : "job"),
      town_(town),
      model_(model) {}

void GuestWork::begin() { later(random().between(1ms, 3s), &GuestWork::come); }

void GuestWork::later(Duration delay, void (GuestWork::*what)()) {
  town_.scheduler.after(delay, [this, what, stay = stay_] {
    if (stay == stay_) (this->*what)();
  });
}

void GuestWork::come() {
  if (town_.is_closing) return;
  if (!town_.server.is_up()) return later(500ms, &GuestWork::come);
  ++stay_;
  connection_ = town_.network.open(client_);
  town_.network.set_end(*connection_, Side::client,
                        {[](std::string_view) {},
                         [this] {
                           ++stay_;
                           connection_.reset();
                           const bool is_long = random().one_in(2);
                           later(random().between(1ms, is_long ? 8s : 100ms), &GuestWork::come);
                         }});
  model_.opens(*connection_);
  dialect_ = random().one_in(8)   ? Dialect::first
             : random().one_in(8) ? Dialect::second
                                  : Dialect::newest;
  town_.server.accept_guest(*connection_, dialect_, name_space_);
  if (dialect_ == Dialect::newest) {
    say({Command::validate, {}, {}, 0, {}});
    say({Command::ping, {}, {}, static_cast<std::int64_t>(client_), {}});
  }
  later(random().between(10ms, random().one_in(4) ? 30s : 8s), &GuestWork::leave);
  work();
}

void GuestWork::leave() {
  if (!random().one_in(3)) return town_.network.cut(client_, true, true);
  town_.network.close(*connection_, Side::client);
  ++stay_;
  connection_.reset();
  later(random().between(1ms, 8s), &GuestWork::come);
}

void GuestWork::work() {
  if (town_.is_closing) {
    town_.network.close(*std::exchange(connection_, std::nullopt), Side::client);
    return;
  }
  const std::uint64_t burst = random().one_in(10) ? 1 + random().below(12) : 1;
  for (std::uint64_t count = 0; count < burst; ++count) ask();
  meet();
  if (random().one_in(town_.plan.has_queues ? 4 : 30)) visit();
  if (random().one_in(100)) {  // it takes nothing for a while
    town_.network.block(client_, Side::client, town_.scheduler.now() + random().between(1ms, 2s));
  }
  // One that says nothing is there all the same.
  const bool is_silent = random().one_in(100);
  later(is_silent ? random().between(5s, 20s) : random().between(1ms, 250ms), &GuestWork::work);
}

/// All who are there come to the same barrier every few seconds; it may be for fewer.
void GuestWork::meet() {
  const auto round = town_.scheduler.now().time_since_epoch() / 1500ms;
  if (std::exchange(met_, round) == round || dialect_ != Dialect::newest) return;
  const auto size = static_cast<std::int64_t>(1 + random().below(town_.plan.guests + 1));
  say({Command::barrier, {"/barrier/" + std::to_string(round)}, {}, size, {}});
}

/// Somebody of Muster's own protocol, in the same namespace.
void GuestWork::visit() {
  const std::string at = key();
  const std::string what = value();
  switch (random().below(town_.plan.has_queues ? 14 : 5)) {
    case 5:
    case 6: return town_.server.visit(name_space_, wire::QueuePush{at, what});
    case 7: return town_.server.visit(name_space_, wire::QueuePop{at});
    case 8: return town_.server.visit(name_space_, wire::QueueLength{at});
    case 9: return town_.server.visit_to_pop(name_space_, at, random().between(1ms, 4s));
    case 0: return town_.server.visit(name_space_, wire::Set{at, what, {}, false, false});
    case 1: return town_.server.visit(name_space_, wire::Get{at});
    case 2: return town_.server.visit(name_space_, wire::Take{at});
    case 3: return town_.server.visit(name_space_, wire::Remove{{at}});
    default: {
      const std::string other = key();
      wire::MultiSet both;
      both.entries = {{at, what}, {other, what}};
      return town_.server.visit(name_space_, both);
    }
  }
}

void GuestWork::ask() {
  if (random().one_in(400)) return say(nonsense());
  say(any_request());
}

void GuestWork::say(const GuestRequest& request) {
  const std::string bytes = bytes_of(request, dialect_);
  model_.sends(*connection_, request, bytes.size());
  std::string_view left = bytes;
  while (!left.empty()) {
    const bool is_cut = random().one_in(6);
    const std::size_t most = left.size() > 10'000 ? 30'000 : is_cut ? 30 : left.size();
    const std::string_view piece = left.substr(0, is_cut ? 1 + random().below(most) : most);
    town_.network.send(*connection_, Side::client, piece);
    left.remove_prefix(piece.size());
  }
}

/// Few, so that guests meet; those of numbers are seldom used for anything else.
std::string GuestWork::key() {
  const std::uint64_t number = random().below(4);
  if (random().one_in(30)) return "/n" + std::to_string(number);
  return "/k" + std::to_string(number);
}

std::string GuestWork::value() {
  switch (random().below(8)) {
    case 0:
    case 1: return "";
    case 2: return std::string(random().below(400), 'l');
    case 3: return "v" + std::to_string(++town_.uses);
    default: return random().one_in(2) ? "one" : "two";
  }
}

/// That is stored where it comes.
std::string GuestWork::long_value() {
  const std::uint64_t most = town_.plan.has_small_limits ? 4'000 : 80'000;
  return std::string(most / 2 + random().below(most / 2), 'x');
}

GuestRequest GuestWork::any_request() {
  if (dialect_ == Dialect::first || random().one_in(2)) return of_first_dialect();
  return dialect_ == Dialect::second ? of_second_dialect() : of_newest_dialect();
}

GuestRequest GuestWork::of_first_dialect() {
  switch (random().below(12)) {
    case 0:
    case 1:
      if (random().one_in(100)) return {Command::set, {long_key}, {long_value()}, 0, {}};
      return {Command::set, {key()}, {value()}, 0, {}};
    case 2: return {Command::get, {random().one_in(20) ? long_key : key()}, {}, 0, {}};
    case 3: return {Command::compare_set, {key()}, {value(), value()}, 0, {}};
    case 4: return {Command::compare_set, {key()}, {"", random().one_in(2) ? "" : value()}, 0, {}};
    case 5:
    case 6: {
      const auto delta = static_cast<std::int64_t>(random().below(5)) - 1;
      return {Command::add, {"/n" + std::to_string(random().below(3))}, {}, delta, {}};
    }
    case 7: return of_several_keys(Command::check);
    case 8:
    case 9: return of_several_keys(Command::wait);
    case 10: return {Command::count_keys, {}, {}, 0, {}};
    default: return {Command::delete_key, {key()}, {}, 0, {}};
  }
}

GuestRequest GuestWork::of_second_dialect() {
  switch (random().below(4)) {
    case 0: return {Command::append, {key()}, {value().substr(0, 50)}, 0, {}};
    case 1: return of_several_keys(Command::multi_get);
    case 2: return of_several_keys(Command::multi_set);
    default: return {Command::cancel_wait, {}, {}, 0, {}};
  }
}

GuestRequest GuestWork::of_newest_dialect() {
  switch (random().below(15)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
    case 6: return of_second_dialect();
    case 7: return {Command::ping, {}, {}, static_cast<std::int64_t>(random().below(1u << 31)), {}};
    case 8:
    case 9: return {Command::queue_push, {key()}, {value()}, 0, {}};
    case 10:
    case 11: return {Command::queue_pop, {key()}, {}, 0, {}};
    case 12: return {Command::queue_length, {key()}, {}, 0, {}};
    case 13: return {Command::list_keys, {}, {}, 0, {}};
    default: return {Command::barrier, {key()}, {}, 1, {}};
  }
}

GuestRequest GuestWork::of_several_keys(Command command) {
  GuestRequest request{command, {}, {}, 0, {}};
  const bool is_of_many = command == Command::multi_set && random().one_in(10);
  for (std::uint64_t count = random().below(4) + (random().one_in(20) ? 20 : 0); count > 0;
       --count) {
    request.keys.push_back(random().one_in(20) ? never_set : key());
    if (command == Command::multi_set) request.values.push_back(value());
  }
  if (command == Command::multi_set) {
    for (std::string& each : request.keys) {
      if (is_of_many) each = "/many/" + std::to_string(random().below(100));
      if (each == never_set) each = "/k0";
    }
  }
  return request;
}

/// It ends the connection.
GuestRequest GuestWork::nonsense() {
  GuestRequest request{Command::set, {key()}, {value()}, 0, {}};
  switch (random().below(dialect_ == Dialect::second ? 3 : 4)) {
    case 0: request.unreadable = "\xf0 no command"; break;
    case 1:  // a key of more bytes than keys may have
      request.unreadable = bytes_of(request, dialect_).substr(0, 1) + number_bytes(101);
      break;
    case 2:
      request = {Command::wait, std::vector<std::string>(41, key()), {}, 0, {}};
      request.unreadable = bytes_of(request, dialect_);
      break;
    default:
      if (dialect_ == Dialect::newest) {
        request.unreadable = std::string(1, '\0') + "magic";
        break;
      }
      request = {Command::watch_key, {key()}, {}, 0, {}};
  }
  return request;
}

}  // namespace muster::sim
