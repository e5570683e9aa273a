#include "board.h"

#include <array>
#include <cstdio>
#include <map>
#include <utility>
#include <vector>

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include "muster/process_group.h"
#include "muster/store.h"

namespace musterrun {

using namespace muster::launch;
using muster::Duration;
using muster::Error;
using muster::ErrorCode;
using muster::Result;

namespace {

/// Of all jobs: a store cannot remove its own namespace, so a job's keys go one by one.
constexpr std::string_view shared_namespace = "musterrun";
constexpr Duration long_time = std::chrono::hours(24 * 20);
constexpr Duration run_lifetime = std::chrono::seconds(15);
constexpr Duration short_time = std::chrono::seconds(30);
constexpr Duration look_again = std::chrono::milliseconds(50);

std::string key_of(std::string_view what, int attempt) {
  return std::string(what) + "/" + std::to_string(attempt);
}

/// So that keys are listed in the order of numbers.
std::string key_of_node(std::uint64_t number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "node/%010llu", static_cast<unsigned long long>(number));
  return text.data();
}

}  // namespace

/// Lives as long as a call of it is pending.
struct Board::State : std::enable_shared_from_this<State> {
  State(asio::io_context& its_context, std::shared_ptr<muster::IoThread> its_thread,
        Options its_options, std::function<void(const Event&)> handler)
      : context(its_context),
        io_thread(std::move(its_thread)),
        options(std::move(its_options)),
        on_event(std::move(handler)),
        own_run(options.run),
        next_look(its_context),
        next_touch(its_context),
        patience(its_context) {}

  void tell(const Event& event) {
    if (!is_closed) on_event(event);
  }

  std::string own(const std::string& key) const { return options.job + "/" + run + "/" + key; }
  std::string key_of_run() const { return options.job + "/run"; }

  /// Enters the run of the job in which launchers are, or begins one. Of a run whose launchers were
  /// all killed nothing counts; its key is gone soon.
  void enter() {
    muster::WriteOptions for_a_while;
    for_a_while.ttl = run_lifetime;
    auto self = shared_from_this();
    store->compare_set_async(key_of_run(), std::nullopt, own_run, for_a_while,
                             options.connect_timeout, [self](Result<muster::Compared> entered) {
                               if (!entered.has_value()) return self->lose(entered.error());
                               if (!entered->applied) return self->enter_after(*entered->current);
                               self->run = self->own_run;
                               self->register_self();
                             });
  }

  /// If somebody is in that run.
  void enter_after(const std::string& found) {
    auto self = shared_from_this();
    store->list_async(options.job + "/" + found + "/node/", 0, short_time,
                      [self, found](Result<muster::KeyPage> page) {
                        if (self->is_closed) return;
                        if (!page) return self->lose(page.error());
                        if (!page->keys.empty()) {
                          self->run = found;
                          return self->register_self();
                        }
                        self->next_look.expires_after(look_again);
                        self->next_look.async_wait([self](const asio::error_code& failed) {
                          if (!failed && !self->is_closed) self->enter();
                        });
                      });
  }

  /// What `key_of_run` has while the last launcher of the run takes its keys back.
  std::string closed_run() const { return run + ".over"; }

  /// Looks whether the run is still the job's, which is so for its lifetime then.
  ///
  /// then  hears true; false: it is over
  void hold_run(std::function<void(bool)> then) {
    muster::WriteOptions for_a_while;
    for_a_while.ttl = run_lifetime;
    auto self = shared_from_this();
    store->compare_set_async(
        key_of_run(), run, run, for_a_while, short_time,
        [self, then](Result<muster::Compared> held) {
          if (self->is_closed) return;
          if (!held.has_value()) return self->lose(held.error());
          if (held->applied || held->current != self->closed_run()) return then(held->applied);
          // Who closes it may not have seen this launcher yet, and opens it again.
          self->next_touch.expires_after(look_again);
          self->next_touch.async_wait([self, then](const asio::error_code& failed) {
            if (!failed && !self->is_closed) self->hold_run(then);
          });
        });
  }

  /// Each launcher keeps the run's key.
  void keep_run() {
    next_touch.expires_after(run_lifetime / 3);
    next_touch.async_wait([self = shared_from_this()](const asio::error_code& failed) {
      if (failed || self->is_closed) return;
      self->hold_run([self](bool is_held) {
        if (is_held) return self->keep_run();
        self->tell(
            BoardLost{"the job ends: its launchers did not run for so long that another one "
                      "of its name may have begun"});
      });
    });
  }

  void lose(const Error& error) {
    if (is_closed || error.code == ErrorCode::closed || error.code == ErrorCode::cancelled) return;
    std::string who = "the server at " + options.address;
    if (!error.ranks.empty() && !error.ranks.front().process.host.empty())
      who += " on host " + error.ranks.front().process.host;
    tell(BoardLost{"the job ends: its meeting place, " + who + ", is gone: " + error.message()});
  }

  /// Calls back with the value when the key is there, however long that takes.
  void await(const std::string& key, std::function<void(const std::string&)> handler) {
    if (!store) return;
    auto self = shared_from_this();
    store->get_async(own(key), long_time, [self, key, handler](Result<std::string> value) {
      if (self->is_closed) return;
      if (value) return handler(*value);
      if (value.error().code == ErrorCode::timed_out) return self->await(key, handler);
      self->lose(value.error());
    });
  }

  /// What was set first stays.
  void publish(const std::string& key, const std::string& value) {
    if (!store) return;
    muster::SetOptions once;
    once.only_if_absent = true;
    auto self = shared_from_this();
    store->set_async(own(key), value, once, short_time, [self](Result<bool> set) {
      if (!set.has_value()) self->lose(set.error());
    });
  }

  void register_self() {
    auto self = shared_from_this();
    store->add_async(own("count"), 1, options.connect_timeout, [self](Result<std::int64_t> number) {
      if (!number) return self->lose(number.error());
      self->options.self.number = static_cast<std::uint64_t>(*number);
      muster::SetOptions bound;
      bound.bind_to_session = true;
      self->store->set_async(self->own(key_of_node(self->options.self.number)),
                             encode(self->options.self), bound, short_time,
                             [self](Result<bool> set) {
                               if (!set.has_value()) return self->lose(set.error());
                               self->confirm();
                             });
    });
  }

  /// The last launcher of the run may have left it meanwhile, and taken back what is in it.
  void confirm() {
    hold_run([self = shared_from_this()](bool is_held) {
      if (!is_held) return self->enter_anew();
      self->keep_run();
      self->await("ending", [self](const std::string& bytes) {
        if (const auto ending = decode_ending(bytes)) self->tell(EndingSeen{*ending});
      });
      self->tell(Registered{self->options.self.number});
    });
  }

  void enter_anew() {
    const std::string node = own(key_of_node(std::exchange(options.self.number, 0)));
    const std::string count = own("count");
    auto self = shared_from_this();
    store->multi_remove_async({node, count}, short_time, [self](Result<std::uint64_t> removed) {
      if (self->is_closed) return;
      if (!removed) return self->lose(removed.error());
      self->enter();
    });
  }

  void look() {
    if (!watches || is_closed || !store || is_looking) return;
    is_looking = true;
    look_at_page(0, {});
  }

  void look_at_page(std::uint64_t cursor, std::vector<std::string> keys) {
    auto self = shared_from_this();
    store->list_async(own("node/"), cursor, short_time, [self, keys](Result<muster::KeyPage> page) {
      if (!page) return self->lose(page.error());
      std::vector<std::string> all = keys;
      for (const muster::KeyInfo& key : page->keys) all.push_back(key.key);
      if (page->cursor != 0) return self->look_at_page(page->cursor, std::move(all));
      self->read_nodes(std::move(all));
    });
  }

  void read_nodes(std::vector<std::string> keys) {
    std::vector<std::string_view> unknown;
    for (const std::string& key : keys)
      if (known.count(key) == 0) unknown.push_back(key);
    if (unknown.empty()) return tell_nodes(keys);
    auto self = shared_from_this();
    store->multi_get_async(
        unknown, Duration::zero(),
        [self, keys](Result<std::vector<std::optional<std::string>>> values) {
          if (!values && values.error().code != ErrorCode::not_found)
            return self->lose(values.error());
          std::size_t index = 0;
          for (const std::string& key : keys) {
            if (self->known.count(key) != 0) continue;
            const bool is_there = values && index < values->size() && (*values)[index];
            const auto node = is_there ? decode_node(*(*values)[index]) : std::nullopt;
            if (node) self->known[key] = *node;
            ++index;
          }
          self->tell_nodes(keys);
        });
  }

  /// Looks at once when another one comes.
  void await_next_node() {
    const std::uint64_t next = (known.empty() ? 0 : known.rbegin()->second.number) + 1;
    if (next <= awaited) return;
    awaited = next;
    await(key_of_node(next), [self = shared_from_this()](const std::string&) { self->look(); });
  }

  void tell_nodes(const std::vector<std::string>& keys) {
    is_looking = false;
    NodesSeen seen;
    for (const std::string& key : keys)
      if (const auto node = known.find(key); node != known.end())
        seen.nodes.push_back(node->second);
    if (!watches || is_closed) return;
    await_next_node();
    next_look.expires_after(std::chrono::seconds(1));
    next_look.async_wait([self = shared_from_this()](const asio::error_code& failed) {
      if (!failed) self->look();
    });
    tell(seen);
  }

  /// Closes the run, so that nobody enters it while its keys go. Whoever has meanwhile goes on.
  void close_run(std::function<void()> finish) {
    change_run(run, closed_run(), finish, [self = shared_from_this(), finish] {
      self->store->list_async(self->own("node/"), 0, short_time, [self, finish](auto page) {
        if (!page) return finish();
        if (page->keys.empty()) return self->remove_keys(finish);
        self->change_run(self->closed_run(), self->run, finish, finish);
      });
    });
  }

  void change_run(const std::string& from, const std::string& to, std::function<void()> otherwise,
                  std::function<void()> then) {
    muster::WriteOptions for_a_while;
    for_a_while.ttl = run_lifetime;
    store->compare_set_async(key_of_run(), from, to, for_a_while, short_time,
                             [otherwise, then](Result<muster::Compared> changed) {
                               changed.has_value() && changed->applied ? then() : otherwise();
                             });
  }

  /// All of the job's.
  void remove_keys(std::function<void()> finish) {
    auto self = shared_from_this();
    store->list_async(own(""), 0, short_time, [self, finish](Result<muster::KeyPage> page) {
      if (!page) return finish();
      if (page->keys.empty()) {
        self->store->remove_async(self->key_of_run(), short_time,
                                  [finish](Result<bool>) { finish(); });
        return;
      }
      std::vector<std::string_view> keys;
      for (const muster::KeyInfo& key : page->keys) keys.push_back(key.key);
      self->store->multi_remove_async(keys, short_time,
                                      [self, finish](Result<std::uint64_t> removed) {
                                        if (!removed) return finish();
                                        self->remove_keys(finish);
                                      });
    });
  }

  void lose_nodes(int of_attempt, const Error& error) {
    NodesLost lost;
    lost.attempt = of_attempt;
    for (const muster::RankRange& range : error.rank_ranges)
      for (int rank = range.first; rank <= range.last; ++rank) lost.node_ranks.push_back(rank);
    if (lost.node_ranks.empty())
      for (const muster::RankReport& report : error.ranks) lost.node_ranks.push_back(report.rank);
    lost.why = error.code == ErrorCode::rank_left   ? "it has left"
               : error.code == ErrorCode::timed_out ? "it has not begun the attempt"
               : error.cause == muster::LossCause::heartbeat
                   ? "it is not heard any more (the host or its network is down)"
                   : "its launcher is dead";
    if (lost.node_ranks.empty()) return lose(error);
    tell(lost);
  }

  asio::io_context& context;
  const std::shared_ptr<muster::IoThread> io_thread;
  Options options;
  std::function<void(const Event&)> on_event;
  std::optional<muster::Store> store;
  std::optional<muster::StatelessProcessGroup> group;
  int attempt = -1;  ///< that began last
  bool watches = false;
  bool is_looking = false;
  bool is_closed = false;
  std::map<std::string, Node> known;
  std::uint64_t awaited = 0;  ///< the number of the next node that is waited for
  const std::string own_run;  ///< the name of a run that this launcher would begin
  std::string run;            ///< the one that it is in
  asio::steady_timer next_look;
  asio::steady_timer next_touch;
  asio::steady_timer patience;
};

Board::Board(asio::io_context& context, std::shared_ptr<muster::IoThread> io_thread,
             Options options, std::function<void(const Event&)> on_event)
    : state_(std::make_shared<State>(context, std::move(io_thread), std::move(options),
                                     std::move(on_event))) {}

Board::~Board() {
  state_->is_closed = true;
  state_->group.reset();
  if (state_->store) state_->store->close();
}

void Board::open() {
  muster::StoreOptions options;
  options.name_space = shared_namespace;
  options.role = muster::Role::supervisor;
  options.label = state_->options.label;
  options.io_thread = state_->io_thread;
  muster::Store::connect_async(state_->options.address, options, state_->options.connect_timeout,
                               [self = state_](Result<muster::Store> store) {
                                 if (self->is_closed) return;
                                 if (!store) return self->lose(store.error());
                                 self->store = *std::move(store);
                                 self->enter();
                               });
}

void Board::watch_nodes(Watch watch) {
  state_->watches = watch == Watch::on;
  if (state_->watches) asio::post(state_->context, [self = state_] { self->look(); });
}

void Board::await_plan(int attempt) {
  state_->await(key_of("plan", attempt), [self = state_](const std::string& bytes) {
    if (auto plan = decode_plan(bytes)) self->tell(PlanSeen{*std::move(plan)});
  });
}

void Board::await_verdict(int attempt) {
  state_->await(key_of("verdict", attempt), [self = state_, attempt](const std::string& bytes) {
    if (auto verdict = decode_verdict(bytes)) self->tell(VerdictSeen{attempt, *std::move(verdict)});
  });
}

void Board::publish(const Plan& plan) {
  state_->publish(key_of("plan", plan.attempt), encode(plan));
}

void Board::publish(int attempt, const Verdict& verdict) {
  state_->publish(key_of("verdict", attempt), encode(verdict));
}

void Board::publish(const Ending& ending) { state_->publish("ending", encode(ending)); }

void Board::count_success(int attempt) {
  if (!state_->store) return;
  state_->store->add_async(state_->own(key_of("succeeded", attempt)), 1, short_time,
                           [self = state_, attempt](Result<std::int64_t> count) {
                             if (!count) return self->lose(count.error());
                             self->tell(SuccessCounted{attempt, static_cast<int>(*count)});
                           });
}

void Board::unregister() {
  if (!state_->store || state_->options.self.number == 0) return;
  state_->store->remove_async(state_->own(key_of_node(state_->options.self.number)), short_time,
                              [](Result<bool>) {});
}

void Board::publish_master(int attempt, const std::string& address) {
  state_->publish(key_of("master", attempt), address);
}

void Board::await_master(int attempt, std::function<void(const std::string&)> handler) {
  state_->await(key_of("master", attempt), std::move(handler));
}

void Board::begin(const Plan& plan, int node_rank) {
  state_->attempt = plan.attempt;
  const auto size = static_cast<int>(plan.nodes.size());
  if (size < 2 || !state_->store) return;
  muster::GroupOptions options;
  options.timeout = state_->options.form_timeout;
  const auto on_loss = [weak = std::weak_ptr(state_), attempt = plan.attempt](const Error& error) {
    const auto self = weak.lock();
    if (self && self->attempt == attempt) self->lose_nodes(attempt, error);
  };
  options.on_loss = on_loss;
  options.on_leave = on_loss;
  muster::StatelessProcessGroup::create_async(
      *state_->store, state_->own(key_of("launchers", plan.attempt)), node_rank, size, options,
      [self = state_, attempt = plan.attempt](Result<muster::StatelessProcessGroup> group) {
        if (self->is_closed || self->attempt != attempt) return;
        if (!group) return self->lose_nodes(attempt, group.error());
        self->group = *std::move(group);
      });
}

void Board::end_attempt() {
  if (state_->attempt < 0 || !state_->store) return;
  state_->group.reset();
  const std::string name = namespace_of_attempt(state_->options.job, state_->attempt);
  state_->store->drop_namespace_async(name, short_time, [](Result<std::uint64_t>) {});
  state_->attempt = -1;
}

void Board::leave(std::function<void()> handler) {
  auto done = std::make_shared<std::function<void()>>(std::move(handler));
  const auto finish = [done, self = state_] {
    if (!*done) return;
    self->is_closed = true;
    self->patience.cancel();
    std::exchange(*done, nullptr)();
  };
  state_->watches = false;
  state_->next_look.cancel();
  state_->next_touch.cancel();
  if (!state_->store || state_->run.empty()) return asio::post(state_->context, finish);
  state_->patience.expires_after(std::chrono::seconds(1));
  state_->patience.async_wait([finish](const asio::error_code& failed) {
    if (!failed) finish();
  });
  end_attempt();
  unregister();
  state_->store->list_async(state_->own("node/"), 0, short_time,
                            [self = state_, finish](auto page) {
                              if (!page || !page->keys.empty()) return finish();
                              self->close_run(finish);
                            });
}

std::string namespace_of_attempt(const std::string& job, int attempt) {
  return job + "/" + std::to_string(attempt);
}

}  // namespace musterrun
