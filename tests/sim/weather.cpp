#include "weather.h"

#include <algorithm>
#include <memory>

namespace muster::sim {
namespace {

using namespace std::chrono_literals;

std::string in_seconds(Duration duration) {
  return std::to_string(static_cast<double>(duration.count()) / 1e6) + " s";
}

}  // namespace

void Weather::begin() {
  const Plan& plan = town_.plan;
  often(plan.short_cuts, &Weather::short_cut);
  often(plan.long_cuts, &Weather::long_cut);
  often(plan.stops, &Weather::stop);
  often(plan.deaths, &Weather::kill);
  often(plan.reports, &Weather::report);
  often(plan.reports, &Weather::drop);
  often(plan.impostors, &Weather::impersonate);
  often(plan.reloads, &Weather::reload);
  often(plan.revocations, &Weather::revoke);
  often(plan.server_pauses, &Weather::pause_server);
  often(plan.server_deaths, &Weather::kill_server);
}

void Weather::often(std::uint32_t per_minute, Strike strike) {
  if (per_minute == 0) return;
  town_.scheduler.after(town_.random.between(100ms, 2 * Duration(60s) / per_minute),
                        [this, per_minute, strike] {
                          if (has_ended_) return;
                          (this->*strike)();
                          often(per_minute, strike);
                        });
}

void Weather::note(const std::string& what) {
  town_.trace.note(town_.scheduler.now(), "weather", what.size(), [&] { return what; });
}

Process* Weather::anyone() {
  const auto alive = hands_.alive();
  return alive.empty() ? nullptr : alive[town_.random.below(alive.size())];
}

void Weather::disturb(Process& process, Duration duration) {
  const Instant now = town_.scheduler.now();
  town_.oracle.disturbed(process.number(), now, now + duration);
  calm_at_ = std::max(calm_at_, now + duration);
}

Duration Weather::short_time() {
  return town_.random.between(1ms, session_timeout() * 3 / 4 - 1500ms);
}

Duration Weather::long_time() {
  return town_.random.between(session_timeout() / 2, session_timeout() * 2);
}

void Weather::short_cut() {
  Process* process = anyone();
  if (process == nullptr) return;
  if (town_.random.one_in(2)) return break_connection(*process);
  cut_off(*process, short_time());
}

/// Often several at once: a part of the network.
void Weather::long_cut() {
  const Duration duration = long_time();
  for (Process* process : hands_.alive()) {
    if (!town_.random.one_in(3)) continue;
    cut_off(*process, duration);
    if (town_.random.one_in(3)) continue;
    town_.scheduler.after(town_.random.between(Duration(0), duration),
                          [this, process] { end_at_server(*process); });
  }
}

/// Something on the way gives the connection up, and only the server hears of it.
void Weather::end_at_server(Process& process) {
  if (process.is_over()) return;
  leave_unaware(process);
  town_.oracle.life(process.number()).broken_at = town_.scheduler.now();
  town_.network.cut(process.number(), false, true);
  note("the connection of " + town_.oracle.life(process.number()).name + " ends at the server");
}

void Weather::cut_off(Process& process, Duration duration) {
  const Instant until = town_.scheduler.now() + duration;
  const std::uint64_t number = process.number();
  Life& life = town_.oracle.life(number);
  const std::string& name = life.name;
  if (life.cut_until < town_.scheduler.now()) {
    life.cut_since = town_.scheduler.now();
    life.cut_until = until;
  }
  disturb(process, duration);
  life.held.emplace_back(town_.scheduler.now(), until);
  if (town_.scheduler.now() < life.finds_out) leave_unaware(process);
  switch (town_.random.below(4)) {
    case 0: {
      const Side side = town_.random.one_in(2) ? Side::client : Side::server;
      town_.network.block(number, side, until);
      return note(name + (side == Side::client ? " hears nothing for " : " is not heard for ") +
                  in_seconds(duration));
    }
    default:
      town_.network.block(number, until);
      return note(name + " is cut off for " + in_seconds(duration));
  }
}

/// How long a client takes to give up a connection that is silent.
Duration Weather::finding_out() {
  const Duration silence = std::max(session_timeout() / 5, Duration(2s)) + 1s;
  return town_.oracle.longer(silence) + 200ms;
}

/// Its connection has ended without a word: it is silent from the last byte that was under way.
void Weather::leave_unaware(Process& process) {
  Life& life = town_.oracle.life(process.number());
  const Instant now = town_.scheduler.now();
  life.finds_out = std::max(now, life.held_until()) + finding_out();
  disturb(process, life.finds_out - now);
}

/// Each end learns, or has to find out.
void Weather::break_connection(Process& process) {
  const bool client_learns = !town_.random.one_in(4);
  const bool server_learns = client_learns && town_.random.one_in(2);
  if (client_learns) disturb(process, 100ms);
  if (!client_learns) leave_unaware(process);
  if (server_learns) town_.oracle.life(process.number()).broken_at = town_.scheduler.now();
  town_.network.cut(process.number(), client_learns, server_learns);
  note("the connection of " + town_.oracle.life(process.number()).name + " breaks; " +
       (client_learns ? "it learns" : "it learns nothing") + ", the server " +
       (server_learns ? "learns" : "learns nothing"));
}

void Weather::stop() {
  Process* process = anyone();
  if (process == nullptr || process->client().is_stopped()) return;
  const bool is_rough = town_.plan.long_cuts + town_.plan.deaths == 0;
  const Duration duration = is_rough || town_.random.one_in(2) ? short_time() : long_time();
  // A connection that broke before is noticed only when it has run again for a while.
  for (Process* part : process->parts()) {
    disturb(*part, duration + finding_out());
    Life& life = town_.oracle.life(part->number());
    life.runs_again = town_.scheduler.now() + duration;
    life.held.emplace_back(town_.scheduler.now(), life.runs_again);
    part->client().stop_for(duration);
    note(life.name + " does not run for " + in_seconds(duration));
  }
}

void Weather::kill() {
  Process* process = anyone();
  if (process == nullptr) return;
  const std::uint32_t slot = process->slot();
  // Now and then somebody takes the rank although its holder lives.
  if (!town_.random.one_in(8)) {
    process->die(town_.random.one_in(3) ? Client::Death::of_machine : Client::Death::of_process);
  }
  const Duration away = town_.random.between(10ms, 2 * session_timeout());
  calm_at_ = std::max(calm_at_, town_.scheduler.now() + away);
  town_.scheduler.after(away, [this, slot] {
    if (!has_ended_) hands_.spawn(slot);
  });
}

void Weather::report() {
  Process* process = anyone();
  Process* other = anyone();
  if (process == nullptr || process == other || !process->can_run()) return;
  if (process->identity().name_space != other->identity().name_space) return;
  Life& life = town_.oracle.life(other->number());
  const bool is_allowed = process->identity().role == wire::Role::supervisor;
  if (is_allowed) life.was_reported = true;
  Ask about;
  const bool is_report = town_.random.one_in(2);
  about.what = (is_report ? "report_dead " : "end_session ") + life.name;
  about.timeout = 5s;
  wire::RequestBody body = wire::ReportDead{life.process, "the simulation says so"};
  if (!is_report) body = wire::EndSession{0, life.process, "the simulation says so"};
  process->ask(std::move(about), body,
               [this, is_allowed, number = other->number(),
                is_foreign = process->identity().is_stranger != other->identity().is_stranger](
                   const auto& reply, protocol::Fate) {
                 if (reply && is_foreign) {
                   return town_.oracle.problem("somebody declared a process of others dead");
                 }
                 if (reply && !is_allowed) town_.oracle.problem("a client declared somebody dead");
                 if (reply) town_.oracle.must_be_known_gone(number);
               });
}

/// Somebody wants to drop the namespace that it is in, which nobody may.
void Weather::drop() {
  Process* process = anyone();
  if (process == nullptr || !process->can_run()) return;
  Ask about;
  about.what = "drop_namespace";
  about.timeout = 5s;
  process->ask(std::move(about), wire::DropNameSpace{process->identity().name_space},
               [this](const auto& reply, protocol::Fate) {
                 if (reply) town_.oracle.problem("a namespace was dropped while it was in use");
               });
}

/// The credentials are another version now.
void Weather::reload() {
  note("the credentials change");
  town_.server.regrant(town_.registry.change(town_.random));
}

/// The credentials of every second worker are gone for a while: their sessions end at once.
void Weather::revoke() {
  const Line line = town_.random.one_in(2) ? Line::worker : Line::other_worker;
  const Duration away = town_.random.one_in(2) ? short_time() : long_time();
  Server& server = town_.server;
  if (town_.registry.is_revoked(line) || !server.is_up() || server.is_stopped()) return;
  note("workers are revoked for " + in_seconds(away));
  const Instant until = town_.scheduler.now() + away;
  calm_at_ = std::max(calm_at_, until);
  server.regrant(town_.registry.revoke(line, until));
  for (const Life& life : town_.oracle.lives()) {
    if (!town_.registry.has(life.client, line)) continue;
    town_.oracle.revoked(life.client, until);
    town_.oracle.must_be_known_gone(life.client);
  }
  town_.scheduler.at(until, [this, line] {
    town_.registry.restore(line);
    note("the workers are known again");
  });
}

/// Somebody wants to resume a session whose token it does not know, or as another identity.
void Weather::impersonate() {
  Process* process = anyone();
  if (process == nullptr || !town_.server.is_up()) return;
  wire::ClientHello hello;
  hello.incarnation = town_.server.incarnation();
  hello.session_id = process->client().session().session_id;
  hello.name_space = process->identity().name_space;
  if (hello.session_id == 0) return;
  if (town_.registry.is_used() && town_.random.one_in(2)) {
    hello.token = process->client().session().token;
  }
  note("somebody pretends to be " + town_.oracle.life(process->number()).name);
  const auto connection = town_.network.open(0);
  const auto answer = std::make_shared<std::string>();
  town_.network.set_end(
      connection, Side::client,
      {[this, answer](std::string_view bytes) {
         answer->append(bytes);
         if (answer->size() != wire::server_hello_bytes) return;
         const auto said = wire::decode_server_hello(*answer);
         if (said && said->status != 0) return;
         town_.oracle.problem("a session was resumed with a wrong token or identity");
       },
       [] {}});
  town_.server.accept(connection);
  std::string bytes;
  wire::append_client_hello(bytes, hello);
  town_.network.send(connection, Side::client, bytes);
}

void Weather::pause_server() {
  if (!town_.server.is_up() || town_.server.is_stopped()) return;
  const Duration duration = town_.random.between(1300ms, 60s);
  calm_at_ = std::max(calm_at_, town_.scheduler.now() + duration);
  town_.oracle.server_stops(town_.scheduler.now() + duration);
  town_.server.stop_for(duration);
  note("the server does not run for " + in_seconds(duration));
}

void Weather::kill_server() {
  if (!town_.server.is_up()) return;
  const Duration away = town_.random.between(10ms, town_.random.one_in(4) ? 45s : 15s);
  calm_at_ = std::max(calm_at_, town_.scheduler.now() + away + 2s);
  town_.oracle.server_died();
  town_.server.die();
  note("the server is killed; it is back in " + in_seconds(away));
  town_.scheduler.after(away, [this] {
    town_.server.start();
    town_.oracle.server_started();
    note("the server is back");
  });
}

}  // namespace muster::sim
