#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <asio/post.hpp>

#include "board_state.h"

namespace musterrun {

using namespace muster::launch;
using muster::Duration;
using muster::Error;
using muster::ErrorCode;
using muster::Result;

namespace {

/// Of all jobs: a store cannot remove its own namespace, so a job's keys go one by one.
constexpr std::string_view shared_namespace = "musterrun";
constexpr Duration roll_call_interval = std::chrono::seconds(1);

}  // namespace

std::string key_of(std::string_view what, int attempt) {
  return std::string(what) + "/" + std::to_string(attempt);
}

/// So that keys are listed in the order of numbers.
std::string key_of_node(std::uint64_t number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "node/%010llu", static_cast<unsigned long long>(number));
  return text.data();
}

void Board::State::lose(const Error& error) {
  if (is_closed || error.code == ErrorCode::closed || error.code == ErrorCode::cancelled) return;
  std::string who = "the server at " + options.address;
  if (!error.ranks.empty() && !error.ranks.front().process.host.empty())
    who += " on host " + error.ranks.front().process.host;
  tell(BoardLost{"the job ends: its meeting place, " + who + ", is gone: " + error.message()});
}

void Board::State::not_reached(const Error& error) {
  // Such as a file of a key or a certificate that cannot be used.
  const bool is_usage = error.code == ErrorCode::invalid_argument;
  tell(BoardLost{"the job ends: its meeting place, the server at " + options.address +
                     ", was not reached: " + error.message(),
                 is_usage ? 2 : 1});
}

void Board::State::await(const std::string& key, std::function<void(const std::string&)> handler) {
  if (!store) return;
  auto self = shared_from_this();
  store->get_async(own(key), long_time, [self, key, handler](Result<std::string> value) {
    if (self->is_closed) return;
    if (value) return handler(*value);
    if (value.error().code == ErrorCode::timed_out) return self->await(key, handler);
    self->lose(value.error());
  });
}

void Board::State::publish(const std::string& key, const std::string& value) {
  if (!store) return;
  muster::SetOptions once;
  once.only_if_absent = true;
  auto self = shared_from_this();
  store->set_async(own(key), value, once, short_time, [self](Result<bool> set) {
    if (!set.has_value()) self->lose(set.error());
  });
}

void Board::State::look() {
  if (!watches || is_closed || !store || is_looking) return;
  is_looking = true;
  list_nodes([self = shared_from_this()](auto keys) { self->read_nodes(std::move(keys)); });
}

void Board::State::list_nodes(KeysHandler handler, std::uint64_t cursor,
                              std::vector<std::string> before) {
  if (!store) return;
  auto self = shared_from_this();
  store->list_async(own("node/"), cursor, short_time,
                    [self, handler, before](Result<muster::KeyPage> page) {
                      if (!page) return self->lose(page.error());
                      std::vector<std::string> all = before;
                      for (const muster::KeyInfo& key : page->keys) all.push_back(key.key);
                      if (page->cursor != 0)
                        return self->list_nodes(handler, page->cursor, std::move(all));
                      if (!self->is_closed) handler(std::move(all));
                    });
}

void Board::State::watch_forming(const Plan& plan) {
  next_roll_call.expires_after(roll_call_interval);
  next_roll_call.async_wait([self = shared_from_this(), plan](const asio::error_code& failed) {
    if (failed || !self->is_forming(plan.attempt)) return;
    self->list_nodes([self, plan](const std::vector<std::string>& keys) {
      if (self->is_forming(plan.attempt)) self->call_roll(plan, keys);
    });
  });
}

void Board::State::call_roll(const Plan& plan, const std::vector<std::string>& keys) {
  const std::set<std::string> there(keys.begin(), keys.end());
  NodesLost lost;
  lost.attempt = plan.attempt;
  for (std::size_t rank = 0; rank < plan.nodes.size(); ++rank)
    if (there.count(own(key_of_node(plan.nodes[rank].number))) == 0)
      lost.node_ranks.push_back(static_cast<int>(rank));
  if (lost.node_ranks.empty()) return watch_forming(plan);
  lost.why = "its launcher has gone before it began the attempt";
  tell(lost);
}

void Board::State::read_nodes(std::vector<std::string> keys) {
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

void Board::State::await_next_node() {
  const std::uint64_t next = (known.empty() ? 0 : known.rbegin()->second.number) + 1;
  if (next <= awaited) return;
  awaited = next;
  await(key_of_node(next), [self = shared_from_this()](const std::string&) { self->look(); });
}

void Board::State::tell_nodes(const std::vector<std::string>& keys) {
  is_looking = false;
  NodesSeen seen;
  for (const std::string& key : keys)
    if (const auto node = known.find(key); node != known.end()) seen.nodes.push_back(node->second);
  if (!watches || is_closed) return;
  await_next_node();
  next_look.expires_after(std::chrono::seconds(1));
  next_look.async_wait([self = shared_from_this()](const asio::error_code& failed) {
    if (!failed) self->look();
  });
  tell(seen);
}

void Board::State::hold_namespace() {
  muster::StoreOptions of_attempt;
  of_attempt.name_space = namespace_of_attempt(options.job, attempt.number);
  of_attempt.namespace_idle_lifetime = Duration::zero();
  of_attempt.label = options.label;
  of_attempt.io_thread = io_thread;
  muster::Store::connect_async(
      options.address, of_attempt, short_time,
      [self = shared_from_this(), of = attempt.number](Result<muster::Store> session) {
        if (session && !self->is_closed && self->attempt.number == of)
          self->attempt.held = *std::move(session);
      });
}

void Board::State::lose_nodes(int of_attempt, const Error& error) {
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

Board::Board(asio::io_context& context, std::shared_ptr<muster::IoThread> io_thread,
             Options options, std::function<void(const Event&)> on_event)
    : state_(std::make_shared<State>(context, std::move(io_thread), std::move(options),
                                     std::move(on_event))) {}

Board::~Board() {
  state_->is_closed = true;
  state_->attempt = {};
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
                                 if (!store) return self->not_reached(store.error());
                                 self->options.on_connected();
                                 self->store = *std::move(store);
                                 self->newcomer.opened_at = std::chrono::steady_clock::now();
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
  const std::uint64_t number = std::exchange(state_->options.self.number, 0);
  if (!state_->store || number == 0) return;
  state_->store->remove_async(state_->own(key_of_node(number)), short_time, [](Result<bool>) {});
}

void Board::publish_master(int attempt, const std::string& address) {
  state_->publish(key_of("master", attempt), address);
}

void Board::await_master(int attempt, std::function<void(const std::string&)> handler) {
  state_->await(key_of("master", attempt), std::move(handler));
}

void Board::begin(const Plan& plan, int node_rank) {
  state_->attempt.number = plan.attempt;
  state_->hold_namespace();
  const auto size = static_cast<int>(plan.nodes.size());
  if (size < 2 || !state_->store) return;
  muster::GroupOptions options;
  options.timeout = state_->options.form_timeout;
  const auto on_loss = [weak = std::weak_ptr(state_), attempt = plan.attempt](const Error& error) {
    const auto self = weak.lock();
    if (self && self->attempt.number == attempt) self->lose_nodes(attempt, error);
  };
  options.on_loss = on_loss;
  options.on_leave = on_loss;
  muster::StatelessProcessGroup::create_async(
      *state_->store, state_->own(key_of("launchers", plan.attempt)), node_rank, size, options,
      [self = state_, attempt = plan.attempt](Result<muster::StatelessProcessGroup> group) {
        if (self->is_closed || self->attempt.number != attempt) return;
        if (!group) return self->lose_nodes(attempt, group.error());
        self->attempt.group = *std::move(group);
      });
  state_->watch_forming(plan);
}

void Board::end_attempt() {
  if (state_->attempt.number < 0 || !state_->store) return;
  state_->attempt = {};
}

void Board::State::leave(Leave when, std::function<void()> finish) {
  list_nodes([self = shared_from_this(), when, finish](const std::vector<std::string>& nodes) {
    if (nodes.empty()) return self->close_run(finish);
    if (when == Leave::now) return finish();
    self->next_look.expires_after(std::chrono::milliseconds(20));
    self->next_look.async_wait([self, when, finish](const asio::error_code& failed) {
      if (!failed && !self->is_closed) self->leave(when, finish);
    });
  });
}

void Board::leave(Leave when, std::function<void()> handler) {
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
  state_->next_roll_call.cancel();
  if (!state_->store || state_->run.empty()) return asio::post(state_->context, finish);
  state_->patience.expires_after(std::chrono::seconds(when == Leave::now ? 1 : 5));
  state_->patience.async_wait([finish](const asio::error_code& failed) {
    if (!failed) finish();
  });
  end_attempt();
  unregister();
  state_->leave(when, finish);
}

std::string namespace_of_attempt(const std::string& job, int attempt) {
  return job + "/" + std::to_string(attempt);
}

}  // namespace musterrun
