#include "store_work.h"

#include <vector>

#include "body.h"

namespace muster::sim {
namespace {

using namespace std::chrono_literals;
using protocol::Fate;
using Reply = Process::Reply;

std::string value_in(const Reply& reply) {
  return std::string(body_of<wire::ValueReply>(*reply).value);
}

bool is_absent(const Reply& reply) { return !reply && reply.error().code == ErrorCode::not_found; }

}  // namespace

void StoreWork::begin() {
  if (town().plan.has_store_work) plan();
}

void StoreWork::plan() {
  process_.later(random().between(1ms, town().plan.thinking_max), [this] { work(); });
}

void StoreWork::work() {
  if (town().is_closing) return;
  plan();
  // A key belongs to one start of the server, so calls are made when it is known.
  if (process_.client().incarnation() == 0 || process_.client().failure() != nullptr) return;
  const auto burst = random().one_in(200) ? 80 : 1;  // more than may be in flight
  const auto kind = random().below(town().plan.has_queues ? 32 : 24);
  for (int count = 0; count < burst; ++count) {
    switch (kind) {
      case 0:
      case 1:
      case 2: add(); break;
      case 3: append(); break;
      case 4:
      case 5: write(); break;
      case 6: compare_and_set(); break;
      case 7:
      case 8: read(); break;
      case 9:
      case 10: put_item(); break;
      case 11:
      case 12:
      case 13: take_item(); break;
      case 14: look_at_item(); break;
      case 15: take_nothing(); break;
      case 16:
      case 17: short_lived(); break;
      case 18: write_pair(); break;
      case 19: read_pair(); break;
      case 20: bind(); break;
      case 21:
      case 22: wait_for_items(); break;
      case 23: look_at_bound(); break;
      case 24:
      case 25:
      case 26: push_item(); break;
      case 27: look_at_queue(); break;
      default: pop_item(); break;
    }
  }
}

StoreWork::Key StoreWork::key(std::string name) { return {process_.table(), std::move(name)}; }

std::string StoreWork::unique(std::string_view what) {
  return std::string(what) + std::to_string(++town().uses);
}

Duration StoreWork::patience() {
  return random().one_in(3) ? random().between(100ms, 2s) : random().between(2s, 20s);
}

std::uint64_t StoreWork::ask(const std::string& what, const wire::RequestBody& body,
                             Duration timeout, Process::Use use) {
  Ask about;
  about.what = what;
  about.timeout = timeout;
  return process_.ask(std::move(about), body, std::move(use));
}

std::uint64_t StoreWork::ask_to_take(const std::string& what, const wire::RequestBody& body,
                                     Duration timeout, Process::Use use) {
  Ask about;
  about.what = what;
  about.timeout = timeout;
  return process_.ask(std::move(about), body, std::move(use), protocol::Receipt::by_caller);
}

/// A value has come. Most processes have it at once, some later, and some do not want it any more.
void StoreWork::settle_taken(const Settled& settled) {
  const protocol::CallId call = process_.client().held();
  if (call == 0) return settled(Fortune::received);  // it was acknowledged when it came
  const auto has_it = [this, call, settled] {
    process_.client().conclude(call, protocol::Verdict::accepted);
    settled(Fortune::received);
  };
  if (!random().one_in(3)) return has_it();
  settled(Fortune::delayed);
  const auto choice = random().below(4);
  process_.later(random().between(Duration(1), 500ms), [this, call, choice, has_it, settled] {
    if (choice == 0) return has_it();
    if (choice > 1) return give_back(call, settled);
    process_.client().conclude(call, protocol::Verdict::refused);
    settled(Fortune::in_doubt);
  });
}

/// It is there again when the server says so.
void StoreWork::give_back(protocol::CallId call, const Settled& settled) {
  ask("give back", wire::CancelTake{call, true}, 2s,
      [this, call, settled](const Reply& reply, Fate fate) {
        const bool is_given_back = reply && body_of<wire::CancelTakeReply>(*reply).given_back;
        const bool is_in_doubt = !reply && fate == Fate::in_doubt;
        process_.client().conclude(
            call, is_in_doubt ? protocol::Verdict::refused : protocol::Verdict::accepted);
        if (is_given_back) return settled(Fortune::given_back);
        settled(is_in_doubt ? Fortune::in_doubt : Fortune::received);
      });
}

void StoreWork::cancel_perhaps(std::uint64_t call) {
  if (!random().one_in(6)) return;
  process_.later(random().between(Duration(1), 500ms), [this, call] { process_.cancel(call); });
}

void StoreWork::add() {
  const Key at = key("n/" + std::to_string(random().below(3)));
  const std::int64_t floor = keys().add_begins(at);
  cancel_perhaps(ask("add " + at.second, wire::Add{at.second, 1}, patience(),
                     [this, at, floor](const Reply& reply, Fate fate) {
                       if (!reply) return keys().add_failed(at, fate == Fate::in_doubt);
                       keys().added(at, floor, body_of<wire::NumberReply>(*reply).number);
                     }));
}

void StoreWork::append() {
  const Key at = key("log");
  const std::string token = unique("t");
  keys().append_begins(at, token);
  cancel_perhaps(ask("append " + token, wire::Append{at.second, token + ";"}, patience(),
                     [this, at, token](const Reply& reply, Fate fate) {
                       if (reply) return keys().appended(at, token);
                       keys().append_failed(at, token, fate == Fate::in_doubt);
                     }));
}

void StoreWork::write() {
  const Key at = key("r/" + std::to_string(random().below(2)));
  const std::string value = unique("v");
  keys().write_begins(at, value);
  cancel_perhaps(ask("set " + at.second + " " + value,
                     wire::Set{at.second, value, {}, false, false}, patience(),
                     [this, at, value](const Reply& reply, Fate fate) {
                       if (reply) return keys().written(at, value);
                       keys().write_failed(at, value, fate == Fate::in_doubt);
                     }));
}

void StoreWork::read() {
  const Key at = key("r/" + std::to_string(random().below(2)));
  const auto floor = keys().read_begins(at);
  ask("get " + at.second, wire::Get{at.second}, random().one_in(2) ? Duration(0) : patience(),
      [this, at, floor](const Reply& reply, Fate) {
        if (reply) return keys().read(at, floor, value_in(reply));
        if (is_absent(reply)) keys().read(at, floor, std::nullopt);
      });
}

void StoreWork::compare_and_set() {
  const Key at = key("r/" + std::to_string(random().below(2)));
  const auto floor = keys().read_begins(at);
  ask("get " + at.second, wire::Get{at.second}, Duration(0),
      [this, at, floor](const Reply& found, Fate) {
        if (!found || key(at.second) != at) return;
        const std::string old = value_in(found);
        keys().read(at, floor, old);
        const std::string value = unique("v");
        keys().write_begins(at, value);
        ask("compare_set " + at.second + " " + old + " " + value,
            wire::CompareSet{at.second, old, value, {}}, patience(),
            [this, at, old, value](const Reply& reply, Fate fate) {
              if (!reply) return keys().write_failed(at, value, fate == Fate::in_doubt);
              const bool applied = body_of<wire::AppliedReply>(*reply).applied;
              if (!applied) return keys().write_failed(at, value, false);
              keys().replaced(at, old);
              keys().written(at, value);
            });
      });
}

void StoreWork::put_item() {
  const Key at = key("item/" + std::to_string(++town().uses));
  keys().item_begins(at);
  cancel_perhaps(ask("set " + at.second, wire::Set{at.second, at.second, {}, false, false},
                     patience(), [this, at](const Reply& reply, Fate fate) {
                       if (reply) return keys().item_is_set(at);
                       keys().item_failed(at, fate == Fate::in_doubt);
                     }));
}

/// Several processes want the same item, before it is there or after.
void StoreWork::take_item() {
  const Key at = key("item/" + std::to_string(town().uses + random().below(20) - 10));
  keys().take_begins(at);
  const std::uint64_t call =
      ask_to_take("take " + at.second, wire::Take{at.second}, patience(),
                  [this, at](const Reply& reply, Fate fate) {
                    if (!reply) return keys().take_failed(at, fate == Fate::in_doubt);
                    settle_taken([this, at, value = value_in(reply)](Fortune fortune) {
                      if (fortune == Fortune::delayed) return;
                      if (fortune == Fortune::received) return keys().taken(at, value);
                      keys().given_back(at, fortune == Fortune::in_doubt);
                    });
                  });
  cancel_perhaps(call);
  if (!random().one_in(6)) return;
  process_.later(random().between(Duration(1), 2s), [this, call] { process_.take_back(call); });
}

void StoreWork::push_item() {
  const Key at = queue();
  const std::string item = unique("q");
  queues().push_begins(at, item);
  cancel_perhaps(ask("queue_push " + at.second + " " + item, wire::QueuePush{at.second, item},
                     patience(), [this, at, item](const Reply& reply, Fate fate) {
                       if (!reply) return queues().push_failed(at, item, fate == Fate::in_doubt);
                       queues().pushed(at, item, body_of<wire::NumberReply>(*reply).number);
                     }));
}

void StoreWork::pop_item() {
  const Key at = queue();
  const auto begun = queues().pop_begins(at);
  const std::uint64_t call =
      ask_to_take("queue_pop " + at.second, wire::QueuePop{at.second},
                  random().one_in(3) ? Duration(0) : patience(),
                  [this, at, begun](const Reply& reply, Fate fate) {
                    if (!reply) {
                      const bool is_decided = fate != Fate::in_doubt;
                      const bool is_over = is_decided && reply.error().code == ErrorCode::timed_out;
                      if (is_absent(reply) || is_over) return queues().popped_nothing(at, begun);
                      return queues().pop_failed(at, begun, !is_decided);
                    }
                    settle_taken([this, at, begun, item = value_in(reply)](Fortune fortune) {
                      if (fortune == Fortune::delayed) return queues().may_come_back(at, item);
                      if (fortune == Fortune::received) return queues().popped(at, begun, item);
                      queues().given_back(at, item, fortune == Fortune::in_doubt);
                    });
                  });
  cancel_perhaps(call);
  if (!random().one_in(6)) return;
  process_.later(random().between(Duration(1), 2s), [this, call] { process_.take_back(call); });
}

void StoreWork::look_at_queue() {
  const Key at = queue();
  const auto before = queues().look_begins(at);
  ask("queue_length " + at.second, wire::QueueLength{at.second}, patience(),
      [this, at, before](const Reply& reply, Fate) {
        if (reply) queues().counted(at, before, body_of<wire::NumberReply>(*reply).number);
      });
}

void StoreWork::look_at_item() {
  const Key at = key("item/" + std::to_string(town().uses - random().below(20)));
  const auto before = keys().look_begins(at);
  ask("exists " + at.second, wire::Exists{{at.second}}, patience(),
      [this, at, before](const Reply& reply, Fate) {
        if (!reply) return;
        keys().item_seen(at, before, body_of<wire::PresenceReply>(*reply).present.at(0));
      });
}

/// Until all are there at one instant.
void StoreWork::wait_for_items() {
  const std::uint64_t first = town().uses + random().below(16) - 12;
  std::vector<std::pair<Key, KeyModel::Seen>> looks;
  wire::Wait request;
  std::vector<std::string> names;
  for (std::uint64_t index = 0; index <= random().below(3); ++index) {
    names.push_back("item/" + std::to_string(first + index));
  }
  for (const std::string& name : names) {
    request.keys.push_back(name);
    looks.emplace_back(key(name), keys().look_begins(key(name)));
  }
  cancel_perhaps(
      ask("wait for " + std::to_string(names.size()) + " from " + names[0], request,
          random().one_in(4) ? Duration(0) : patience(), [this, looks](const Reply& reply, Fate) {
            bool are_all_there = true;
            for (const auto& [at, before] : looks) {
              if (reply) keys().item_seen(at, before, true);
              are_all_there &= keys().is_surely_there(at, before);
            }
            const bool is_missing =
                is_absent(reply) || (!reply && reply.error().code == ErrorCode::timed_out);
            if (is_missing && are_all_there) {
              town().oracle.problem("a wait for keys that are there is in vain");
            }
          }));
}

void StoreWork::take_nothing() {
  cancel_perhaps(
      ask("take never", wire::Take{"never"}, patience(), [this](const Reply& reply, Fate) {
        if (reply) town().oracle.problem("a value of a key that was never set");
      }));
}

void StoreWork::short_lived() {
  ShortLived at{key("short/" + std::to_string(++town().uses)),
                unique("v"),
                random().between(50ms, 4s),
                town().scheduler.now(),
                {}};
  ask("set " + at.key.second + " with a time to live",
      wire::Set{at.key.second, at.value, at.ttl, false, false}, patience(),
      [this, at](const Reply& reply, Fate) mutable {
        if (!reply) return;
        at.set = town().scheduler.now();
        if (random().one_in(3)) return lives_on(at.key);
        if (random().one_in(2)) return touch(at);
        process_.later(random().between(Duration(0), 2 * at.ttl), [this, at] {
          if (key(at.key.second) == at.key) read_short_lived(at);
        });
      });
}

/// Present until its time, absent from then on.
void StoreWork::read_short_lived(const ShortLived& at) {
  const Instant asked = town().scheduler.now();
  ask("get " + at.key.second, wire::Get{at.key.second}, Duration(0),
      [this, at, asked](const Reply& reply, Fate) {
        Oracle& oracle = town().oracle;
        const Instant answered = town().scheduler.now();
        if (is_absent(reply) && answered < at.begun + oracle.shorter(at.ttl)) {
          oracle.problem("key " + at.key.second + " is absent before its time");
        }
        if (!reply) return;
        if (asked > at.set + oracle.longer(at.ttl)) {
          oracle.problem("key " + at.key.second + " is there past its time to live");
        }
        if (value_in(reply) != at.value) oracle.problem(at.key.second + " has another value");
      });
}

/// A touch gives it another time to live from then on, or none.
void StoreWork::touch(const ShortLived& at) {
  const bool clears = random().one_in(3);
  const wire::Ttl ttl = clears ? wire::Ttl() : wire::Ttl(random().between(50ms, 4s));
  const Instant begun = town().scheduler.now();
  ask("touch " + at.key.second, wire::Touch{at.key.second, ttl}, patience(),
      [this, at, ttl, begun](const Reply& reply, Fate) {
        const Instant now = town().scheduler.now();
        if (is_absent(reply) && now < at.begun + town().oracle.shorter(at.ttl)) {
          town().oracle.problem("key " + at.key.second + " is absent before its time");
        }
        if (!reply) return;
        if (begun > at.set + town().oracle.longer(at.ttl)) {
          town().oracle.problem("key " + at.key.second + " was touched past its time to live");
        }
        if (!ttl) return still_lives(at.key);
        const ShortLived touched{at.key, at.value, *ttl, begun, now};
        process_.later(random().between(Duration(0), 2 * *ttl), [this, touched] {
          if (key(touched.key.second) == touched.key) read_short_lived(touched);
        });
      });
}

/// A set without a time to live clears the older one.
void StoreWork::lives_on(const Key& at) {
  ask("set " + at.second + " for good", wire::Set{at.second, "v", {}, false, false}, patience(),
      [this, at](const Reply& reply, Fate) {
        if (reply) still_lives(at);
      });
}

void StoreWork::still_lives(const Key& at) {
  process_.later(random().between(Duration(0), 6s), [this, at] {
    if (key(at.second) != at) return;
    ask("get " + at.second, wire::Get{at.second}, Duration(0),
        [this, at](const Reply& found, Fate) {
          if (is_absent(found)) town().oracle.problem("key " + at.second + " went too early");
        });
  });
}

void StoreWork::write_pair() {
  const std::string value = unique("p");
  ask("multi_set pair", wire::MultiSet{{{"pair/a", value}, {"pair/b", value}}, {}}, patience(),
      [](const Reply&, Fate) {});
}

void StoreWork::read_pair() {
  ask("multi_get pair", wire::MultiGet{{"pair/a", "pair/b"}}, patience(),
      [this](const Reply& reply, Fate) {
        if (!reply) return;
        const auto values = body_of<wire::ValuesReply>(*reply).values;
        if (values.at(0) != values.at(1)) town().oracle.problem("a multi_set was half applied");
      });
}

/// A key that goes with its session.
void StoreWork::bind() {
  const Key at = key("bound/" + std::to_string(process_.number()));
  const auto session = process_.client().session_number();
  ask("set " + at.second, wire::Set{at.second, "b", {}, false, true}, patience(),
      [this, at, session](const Reply& reply, Fate) {
        if (!reply) return;
        ask("exists " + at.second, wire::Exists{{at.second}}, patience(),
            [this, at, session](const Reply& seen, Fate) {
              if (!seen || process_.client().session_number() != session) return;
              if (!body_of<wire::PresenceReply>(*seen).present.at(0)) {
                town().oracle.problem("a bound key is gone, its session is not");
              }
            });
      });
}

void StoreWork::look_at_bound() {
  Oracle& oracle = town().oracle;
  const Life& owner = oracle.lives().at(1 + random().below(oracle.lives().size() - 1));
  const Key at = key("bound/" + std::to_string(owner.client));
  const bool is_over = owner.died && oracle.is_surely_lost(owner, oracle.now()) &&
                       owner.name_space == process_.identity().name_space;
  ask("exists " + at.second, wire::Exists{{at.second}}, patience(),
      [this, at, is_over](const Reply& reply, Fate) {
        if (!reply || !body_of<wire::PresenceReply>(*reply).present.at(0)) return;
        if (is_over) town().oracle.problem("key " + at.second + " outlives its session");
      });
}

}  // namespace muster::sim
