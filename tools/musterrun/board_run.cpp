#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "board_state.h"

namespace musterrun {

using namespace muster::launch;
using muster::Duration;
using muster::Result;

namespace {

constexpr Duration run_lifetime = std::chrono::seconds(15);
constexpr Duration look_again = std::chrono::milliseconds(50);
/// Until a launcher knocks again: one that was killed may have taken its knock.
constexpr Duration knock_again = std::chrono::milliseconds(200);
/// After that it says that it waits for an earlier run to end.
constexpr Duration silence = std::chrono::seconds(1);

}  // namespace

void Board::State::enter() {
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

void Board::State::enter_after(const std::string& found) {
  auto self = shared_from_this();
  if (std::exchange(newcomer.found_run, found) != found)
    newcomer.found_at = std::chrono::steady_clock::now();
  store->list_async(options.job + "/" + found + "/node/", 0, short_time,
                    [self, found](Result<muster::KeyPage> page) {
                      if (self->is_closed) return;
                      if (!page) return self->lose(page.error());
                      if (page->keys.empty()) return self->enter_later();
                      self->knock(found);
                    });
}

void Board::State::knock(const std::string& found) {
  const std::string keys = options.job + "/" + found + "/";
  muster::SetOptions for_a_while;
  for_a_while.ttl = run_lifetime;
  auto self = shared_from_this();
  store->set_async(
      keys + "knock", own_run, for_a_while, short_time, [self, keys, found](Result<bool> set) {
        if (self->is_closed) return;
        if (!set.has_value()) return self->lose(set.error());
        self->store->get_async(
            keys + "alive/" + self->own_run, knock_again,
            [self, found](const Result<std::string>& answer) {
              if (self->is_closed) return;
              if (answer) return self->enter_run(found);
              if (answer.error().code != muster::ErrorCode::timed_out)
                return self->lose(answer.error());
              // Its name would be gone if no launcher had kept it: one lives,
              // of an older version, which does not answer.
              if (std::chrono::steady_clock::now() - self->newcomer.found_at > run_lifetime)
                return self->enter_run(found);
              self->enter_later();
            });
      });
}

void Board::State::enter_run(const std::string& found) {
  run = found;
  register_self();
}

void Board::State::answer_knocks() {
  auto self = shared_from_this();
  store->take_async(own("knock"), long_time, [self](const Result<std::string>& name) {
    if (self->is_closed || self->options.self.number == 0) return;
    if (name) {
      muster::SetOptions for_a_while;
      for_a_while.ttl = run_lifetime;
      self->store->set_async(self->own("alive/" + *name), "", for_a_while, short_time,
                             [](Result<bool>) {});
    } else if (name.error().code != muster::ErrorCode::timed_out) {
      return self->lose(name.error());
    }
    self->answer_knocks();
  });
}

void Board::State::enter_later() {
  const auto waited = std::chrono::steady_clock::now() - newcomer.opened_at;
  if (waited > options.connect_timeout + run_lifetime) {
    return tell(BoardLost{"the job ends: an earlier run of job " + options.job +
                          ", at the server at " + options.address +
                          ", is not over: its launchers still end their ranks. Wait for them, "
                          "or give another --job-id"});
  }
  if (waited > silence && !std::exchange(newcomer.has_told_of_waiting, true))
    options.on_notice(
        "this node waits until an earlier run of this job is over: no node takes part in it any "
        "more, but its launchers still end their ranks, or were killed just now");
  next_look.expires_after(look_again);
  next_look.async_wait([self = shared_from_this()](const asio::error_code& failed) {
    if (!failed && !self->is_closed) self->enter();
  });
}

void Board::State::hold_run(std::function<void(bool)> then) {
  muster::WriteOptions for_a_while;
  for_a_while.ttl = run_lifetime;
  auto self = shared_from_this();
  store->compare_set_async(
      key_of_run(), run, run, for_a_while, short_time, [self, then](Result<muster::Compared> held) {
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

void Board::State::keep_run() {
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

void Board::State::register_self() {
  auto self = shared_from_this();
  store->add_async(own("count"), 1, options.connect_timeout, [self](Result<std::int64_t> number) {
    if (!number) return self->lose(number.error());
    self->options.self.number = static_cast<std::uint64_t>(*number);
    muster::SetOptions bound;
    bound.bind_to_session = true;
    self->store->set_async(self->own(key_of_node(self->options.self.number)),
                           encode(self->options.self), bound, short_time, [self](Result<bool> set) {
                             if (!set.has_value()) return self->lose(set.error());
                             self->confirm();
                           });
  });
}

void Board::State::confirm() {
  hold_run([self = shared_from_this()](bool is_held) {
    if (!is_held) return self->enter_anew();
    self->keep_run();
    self->answer_knocks();
    self->await("ending", [self](const std::string& bytes) {
      if (const auto ending = decode_ending(bytes)) self->tell(EndingSeen{*ending});
    });
    self->tell(Registered{self->options.self.number});
  });
}

void Board::State::enter_anew() {
  const std::string node = own(key_of_node(std::exchange(options.self.number, 0)));
  const std::string count = own("count");
  // Other launchers may have entered the old run. Under the same name, two could get one number.
  own_run += "+";
  auto self = shared_from_this();
  store->multi_remove_async({node, count}, short_time, [self](Result<std::uint64_t> removed) {
    if (self->is_closed) return;
    if (!removed) return self->lose(removed.error());
    self->enter();
  });
}

void Board::State::close_run(std::function<void()> finish) {
  change_run(run, closed_run(), finish, [self = shared_from_this(), finish] {
    self->store->list_async(self->own("node/"), 0, short_time, [self, finish](auto page) {
      if (!page) return finish();
      if (page->keys.empty()) return self->remove_keys(finish);
      self->change_run(self->closed_run(), self->run, finish, finish);
    });
  });
}

void Board::State::change_run(const std::string& from, const std::string& to,
                              std::function<void()> otherwise, std::function<void()> then) {
  muster::WriteOptions for_a_while;
  for_a_while.ttl = run_lifetime;
  store->compare_set_async(key_of_run(), from, to, for_a_while, short_time,
                           [otherwise, then](Result<muster::Compared> changed) {
                             changed.has_value() && changed->applied ? then() : otherwise();
                           });
}

void Board::State::remove_keys(std::function<void()> finish) {
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

}  // namespace musterrun
