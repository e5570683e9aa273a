#include "board_rim.h"

#include <cstdio>

namespace muster::sim::job {
namespace {

using namespace std::chrono_literals;

constexpr Duration look_again = 50ms;
constexpr Duration knock_again = 200ms;
constexpr Duration silence = 1s;
constexpr Duration roll_call_interval = 1s;

std::string key_of(const char* what, int attempt) {
  return std::string(what) + "/" + std::to_string(attempt);
}

std::string key_of_node(std::uint64_t number) {
  char text[32] = {};
  std::snprintf(text, sizeof text, "node/%010llu", static_cast<unsigned long long>(number));
  return text;
}

}  // namespace

BoardRim::BoardRim(Land& land, std::size_t who, launch::Node self, Ears ears)
    : land_(land),
      who_(who),
      self_(std::move(self)),
      ears_(std::move(ears)),
      wire_(land.scheduler, land.random, land.story.delay_max) {}

/// Whether the server does a request. To one whose session is over it says so.
bool BoardRim::reaches(std::uint64_t request) {
  if (land_.board.is_dead()) return false;
  if (!session_.is_over) return true;
  if (!is_closed_) wire_.down(request, [this] { ears_.take([this] { lose(); }); });
  return false;
}

void BoardRim::answer(std::uint64_t request, std::function<void()> then) {
  wire_.down(request, [this, then] {
    ears_.take([this, then] {
      if (!is_closed_) then();
    });
  });
}

void BoardRim::lose() {
  if (!is_closed_ && !is_leaving_) ears_.hear(launch::BoardLost{"the meeting place is gone"});
}

void BoardRim::await(const std::string& key, Board::Answer handler) {
  const std::uint64_t number = ++requests_;
  wire_.up([this, number, key, handler] {
    if (!reaches(number)) return;
    land_.board.await(session_, key, [this, number, handler](const std::string& value) {
      answer(number, [handler, value] { handler(value); });
    });
  });
}

void BoardRim::set_once(const std::string& key, const std::string& value, Published what) {
  ask(
      [this, key, value, what] {
        const bool is_first = !land_.board.set_once(key, value);
        land_.judge.published(who_, run_, what, value, is_first);
        if (is_first) land_.put(what, who_);
        return is_first;
      },
      [](bool) {});
}

void BoardRim::open() {
  opened_ = land_.scheduler.now();
  enter();
}

void BoardRim::enter() {
  ask([this] { return land_.board.set_once("job/run", own_run(), run_lifetime); },
      [this](const std::optional<std::string>& found) {
        if (found) return enter_after(*found);
        run_ = own_run();
        register_self();
      });
}

void BoardRim::enter_after(const std::string& found) {
  ask([this, found] { return !land_.board.list("job/" + found + "/node/").empty(); },
      [this, found](bool has_nodes) { has_nodes ? knock(found) : enter_later(); });
}

std::string BoardRim::own_run() const {
  return "r" + std::to_string(who_) + std::string(entries_, '+');
}

void BoardRim::knock(const std::string& found) {
  const std::string keys = "job/" + found + "/";
  ask([this, keys] { return land_.board.put(keys + "knock", own_run(), run_lifetime), true; },
      [this, keys, found](bool) {
        later(knock_again, [this, keys, found] {
          ask([this, keys] { return land_.board.value_of(keys + "alive/" + own_run()); },
              [this, found](const std::optional<std::string>& answer) {
                if (!answer) return enter_later();
                run_ = found;
                register_self();
              });
        });
      });
}

void BoardRim::answer_knocks() {
  const std::uint64_t number = ++requests_;
  wire_.up([this, number] {
    if (!reaches(number)) return;
    land_.board.take(session_, own("knock"), [this, number](const std::string& newcomer) {
      answer(number, [this, newcomer] {
        if (is_leaving_ || self_.number == 0) return;
        ask(
            [this, newcomer] {
              return land_.board.put(own("alive/" + newcomer), "", run_lifetime), true;
            },
            [](bool) {});
        answer_knocks();
      });
    });
  });
}

void BoardRim::enter_later() {
  const Duration waited = land_.scheduler.now() - opened_;
  if (waited > land_.story.options.join_timeout + run_lifetime) {
    land_.judge.loses_run(who_);
    return lose();
  }
  if (waited > silence && !std::exchange(has_told_of_waiting_, true))
    land_.judge.count(Count::runs_awaited);
  later(look_again, [this] { enter(); });
}

void BoardRim::register_self() {
  ask([this] { return land_.board.add_one(own("count")); },
      [this](std::int64_t number) {
        self_.number = static_cast<std::uint64_t>(number);
        ask(
            [this] {
              land_.judge.registers(who_, run_, self_);
              land_.board.bind(session_, own(key_of_node(self_.number)), encode(self_));
              return true;
            },
            [this](bool) { confirm(); });
      });
}

/// The last launcher of the run may have left it meanwhile, and taken back what is in it.
void BoardRim::confirm() {
  hold_run([this](bool is_held) {
    if (!is_held) return enter_anew();
    keep_run();
    answer_knocks();
    await(own("ending"), [this](const std::string& bytes) {
      ears_.hear(launch::EndingSeen{*launch::decode_ending(bytes)});
    });
    ears_.hear(launch::Registered{self_.number});
  });
}

void BoardRim::enter_anew() {
  land_.judge.count(Count::runs_entered_anew);
  ++entries_;
  const std::string node = own(key_of_node(std::exchange(self_.number, 0)));
  ask(
      [this, node] {
        land_.board.remove(node);
        land_.board.remove(own("count"));
        return true;
      },
      [this](bool) { enter(); });
}

void BoardRim::hold_run(std::function<void(bool)> then) {
  ask(
      [this] {
        const bool is_held = change_run(run_, run_);
        return std::pair(is_held, land_.board.value_of("job/run"));
      },
      [this, then](const std::pair<bool, std::optional<std::string>>& held) {
        if (held.first || held.second != closed_run()) return then(held.first);
        later(look_again, [this, then] { hold_run(then); });
      });
}

bool BoardRim::change_run(const std::string& from, const std::string& to) {
  return land_.board.change("job/run", from, to, run_lifetime);
}

/// When the launcher runs, if it stays until then.
void BoardRim::later(Duration delay, std::function<void()> then) {
  land_.scheduler.after(delay, std::function<void()>([this, then] {
                          ears_.take([this, then] {
                            if (!is_closed_ && !is_leaving_) then();
                          });
                        }));
}

void BoardRim::keep_run() {
  later(run_lifetime / 3, [this] {
    hold_run([this](bool is_held) {
      if (is_held) return keep_run();
      land_.judge.loses_run(who_);
      lose();
    });
  });
}

void BoardRim::watch_nodes(launch::Watch watch) {
  watches_ = watch == launch::Watch::on;
  if (watches_) look();
}

void BoardRim::look() {
  if (!watches_ || is_closed_ || is_looking_) return;
  is_looking_ = true;
  ask(
      [this] {
        std::vector<std::pair<std::string, std::string>> found;
        for (const std::string& key : land_.board.list(own("node/")))
          found.emplace_back(key, *land_.board.value_of(key));
        return found;
      },
      [this](const std::vector<std::pair<std::string, std::string>>& found) { tell_nodes(found); });
}

void BoardRim::tell_nodes(const std::vector<std::pair<std::string, std::string>>& found) {
  is_looking_ = false;
  launch::NodesSeen seen;
  for (const auto& [key, value] : found) {
    seen.nodes.push_back(*launch::decode_node(value));
    known_[key] = seen.nodes.back();
  }
  if (!watches_ || is_closed_) return;
  await_next_node();
  land_.scheduler.after(1s, std::function<void()>([this, number = ++looks_] {
                          ears_.take([this, number] {
                            if (number == looks_) look();
                          });
                        }));
  ears_.hear(seen);
}

void BoardRim::await_next_node() {
  const std::uint64_t next = (known_.empty() ? 0 : known_.rbegin()->second.number) + 1;
  if (next <= awaited_) return;
  awaited_ = next;
  await(own(key_of_node(next)), [this](const std::string&) { look(); });
}

void BoardRim::await_plan(int attempt) {
  await(own(key_of("plan", attempt)), [this](const std::string& bytes) {
    if (const auto plan = launch::decode_plan(bytes)) ears_.hear(launch::PlanSeen{*plan});
  });
}

void BoardRim::await_verdict(int attempt) {
  await(own(key_of("verdict", attempt)), [this, attempt](const std::string& bytes) {
    if (const auto verdict = launch::decode_verdict(bytes))
      ears_.hear(launch::VerdictSeen{attempt, *verdict});
  });
}

void BoardRim::publish(const launch::Plan& plan) {
  set_once(own(key_of("plan", plan.attempt)), encode(plan), {Published::Kind::plan, plan.attempt});
}

void BoardRim::publish(int attempt, const launch::Verdict& verdict) {
  set_once(own(key_of("verdict", attempt)), encode(verdict), {Published::Kind::verdict, attempt});
}

void BoardRim::publish(const launch::Ending& ending) {
  set_once(own("ending"), encode(ending), {Published::Kind::ending, 0});
}

void BoardRim::count_success(int attempt) {
  ask([this, attempt] { return land_.board.add_one(own(key_of("succeeded", attempt))); },
      [this, attempt](std::int64_t count) {
        ears_.hear(launch::SuccessCounted{attempt, static_cast<int>(count)});
      });
}

void BoardRim::unregister() {
  const std::uint64_t own_number = std::exchange(self_.number, 0);
  if (own_number == 0) return;
  ask(
      [this, own_number] {
        land_.board.remove(own(key_of_node(own_number)));
        return true;
      },
      [](bool) {});
}

void BoardRim::publish_master(int attempt) {
  ask([this, attempt] { return land_.board.set_once(own(key_of("master", attempt)), "there"); },
      [](const std::optional<std::string>&) {});
}

void BoardRim::await_master(int attempt, std::function<void()> handler) {
  await(own(key_of("master", attempt)), [handler](const std::string&) { handler(); });
}

void BoardRim::begin(const launch::Plan& plan, int node_rank) {
  attempt_ = plan.attempt;
  const auto size = static_cast<int>(plan.nodes.size());
  if (size < 2) return;
  const std::uint64_t number = ++requests_;
  wire_.up([this, number, attempt = plan.attempt, node_rank, size] {
    if (!reaches(number)) return;
    land_.board.join(session_, own(key_of("launchers", attempt)), node_rank, size,
                     land_.story.form_timeout, [this, attempt](const GroupNews& news) {
                       // Told of its own accord: before or after the answers of a reconnect.
                       const std::uint64_t when = land_.random.one_in(2) ? 0 : ~std::uint64_t{0};
                       answer(when, [this, attempt, news] { hear(attempt, news); });
                     });
  });
  watch_forming(plan);
}

/// Until the group is there, whether all of its launchers still are.
void BoardRim::watch_forming(const launch::Plan& plan) {
  later(roll_call_interval, [this, plan] {
    if (!is_forming(plan.attempt)) return;
    ask([this] { return land_.board.list(own("node/")); },
        [this, plan](const std::vector<std::string>& keys) {
          if (is_forming(plan.attempt)) call_roll(plan, {keys.begin(), keys.end()});
        });
  });
}

void BoardRim::call_roll(const launch::Plan& plan, const std::set<std::string>& there) {
  launch::NodesLost lost{plan.attempt, {}, "its launcher has gone before it began the attempt"};
  for (std::size_t rank = 0; rank < plan.nodes.size(); ++rank)
    if (there.count(own(key_of_node(plan.nodes[rank].number))) == 0)
      lost.node_ranks.push_back(static_cast<int>(rank));
  if (lost.node_ranks.empty()) return watch_forming(plan);
  land_.judge.count(Count::lost_while_forming);
  ears_.hear(lost);
}

void BoardRim::hear(int attempt, const GroupNews& news) {
  const std::string name = own(key_of("launchers", attempt));
  if (attempt != attempt_) {
    // The handle of a group that nobody wants leaves it.
    if (news.kind == GroupNews::Kind::formed)
      ask([this, name] { return land_.board.leave(session_, name), true; }, [](bool) {});
    return;
  }
  if (news.kind == GroupNews::Kind::formed) {
    group_ = name;
    return;
  }
  launch::NodesLost lost{attempt, news.ranks, {}};
  lost.why = news.kind == GroupNews::Kind::left       ? "it has left"
             : news.kind == GroupNews::Kind::not_come ? "it has not begun the attempt"
                                                      : "its launcher is dead";
  ears_.hear(lost);
}

void BoardRim::end_attempt() {
  if (!group_.empty())
    ask([this, name = group_] { return land_.board.leave(session_, name), true; }, [](bool) {});
  group_.clear();
  attempt_ = -1;
}

void BoardRim::leave(std::function<void()> handler) {
  watches_ = false;
  is_leaving_ = true;
  if (run_.empty()) return handler();
  land_.scheduler.after(1s, std::function<void()>([this, handler] { ears_.take(handler); }));
  end_attempt();
  unregister();
  ask([this] { return is_empty(); },
      [this, handler](bool is_last) { is_last ? close_run(handler) : handler(); });
}

bool BoardRim::is_empty() { return land_.board.list(own("node/")).empty(); }

/// Nobody enters the run while its keys go. Whoever has meanwhile goes on.
void BoardRim::close_run(std::function<void()> then) {
  ask([this] { return change_run(run_, closed_run()); },
      [this, then](bool is_closed) {
        if (!is_closed) return then();
        ask([this] { return is_empty(); },
            [this, then](bool is_last) {
              if (is_last) return remove_keys(then);
              land_.judge.count(Count::runs_opened_again);
              ask([this] { return change_run(closed_run(), run_); }, [then](bool) { then(); });
            });
      });
}

/// All of the job's.
void BoardRim::remove_keys(std::function<void()> then) {
  ask([this] { return land_.board.list(own("")); },
      [this, then](const std::vector<std::string>& keys) {
        ask(
            [this, keys] {
              for (const std::string& key : keys) land_.board.remove(key);
              if (keys.empty()) land_.board.remove("job/run");
              return true;
            },
            [this, then, is_last = keys.empty()](bool) { is_last ? then() : remove_keys(then); });
      });
}

void BoardRim::say_goodbye() {
  close();
  wire_.up([this] { end_session(); });
}

}  // namespace muster::sim::job
