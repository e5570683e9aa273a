#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "group_driver.h"

// A few clients do anything at any time: join, call, send, regroup, leave, vanish, come back, give
// up, acknowledge or not. Whatever they do, the promises that need no knowledge of the rules hold:
// one reply per request and none after its deadline, one outcome per round, only the right object,
// and when all are gone nothing is left.

namespace muster::test {

struct Asked {
  std::size_t client = 0;
  wire::Operation operation{};
  core::Instant deadline;
  std::uint64_t epoch = 0;
  std::uint64_t round = 0;
  std::pair<std::uint32_t, std::uint64_t> stream;  ///< peer and tag of a send or receive
  std::string object;                              ///< a receive: what must come
  bool may_lack_reply = false;                     ///< abandoned, or its connection was lost
};

struct Client {
  core::ConnectionId connection = 0;
  std::uint64_t session = 0;
  wire::ResumeToken token;
  std::uint64_t epoch = 0;
  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;
  std::uint64_t next_round = 1;
  std::uint64_t next_attempt = 1;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> sent;  ///< next sequence
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> received;
  std::vector<std::uint64_t> to_acknowledge;
};

/// `Choices` is called with a number and returns one that is less.
template <class Choices>
class Chaos {
 public:
  explicit Chaos(Choices choices) : choices_(std::move(choices)), driver_(options()) {
    for (std::size_t index = 0; index < clients_.size(); ++index) begin(index);
  }

  void step() {
    const std::size_t index = below(clients_.size());
    Client& client = clients_[index];
    if (client.session == 0) return begin(index);
    if (client.connection == 0) return below(3) == 0 ? come_back(index) : pass();
    if (client.epoch == 0 && below(2) == 0) return join(index);
    switch (below(26)) {
      case 0: return join(index);
      case 1:
      case 2:
      case 3:
      case 4:
      case 5:
      case 6:
      case 22:
      case 23:
      case 24: return collective(index);
      case 7:
      case 8: return send(index);
      case 9:
      case 10: return receive(index);
      case 11: return regroup(index);
      case 12: return below(4) == 0 ? ask(index, wire::Leave{client.epoch}) : pass();
      case 13: return ask(index, wire::Members{client.epoch});
      case 14: return ask(index, wire::CancelRound{client.epoch, client.next_round - below(2)});
      case 15: return ask(index, wire::Recover{client.epoch, client.next_round - below(3), {}});
      case 21: return ask(index, wire::CancelRegroup{client.epoch, 1 + below(3)});
      case 16: return abandon(index);
      case 17: return below(3) == 0 ? drop(index) : pass();
      case 18: return below(8) == 0 ? say_goodbye(index) : pass();
      case 19:
      case 20: return acknowledge(index);
      default: return pass();
    }
  }

  void finish() {
    for (std::size_t index = 0; index < clients_.size(); ++index) {
      if (clients_[index].connection != 0) say_goodbye(index);
    }
    for (int second = 0; second < 40; ++second) wait(std::chrono::seconds(1));
    const core::Counts counts = driver_.engine.counts();
    CHECK(counts.sessions == 0);
    CHECK(counts.groups == 0);
    CHECK(counts.epochs == 0);
    CHECK(counts.objects == 0);
    CHECK(counts.waits == 0);
    CHECK(counts.timers == 0);
    CHECK(counts.memory_bytes == 0);
  }

  /// Every code that a reply had.
  const std::set<ErrorCode>& told() const { return told_; }

 private:
  static core::Options options() {
    core::Options options;
    options.open_rounds_max = 3;
    options.limits.session_timeout = std::chrono::seconds(5);
    options.limits.grace = std::chrono::seconds(1);
    return options;
  }

  std::size_t below(std::size_t end) { return choices_(end); }

  void begin(std::size_t index) {
    Client& client = clients_[index] = {};
    client.connection = driver_.connect();
    look();
    client.session = last_hello_.session_id;
    client.token = last_hello_.token;
  }

  void ask(std::size_t index, wire::RequestBody body, std::string object = {}) {
    Client& client = clients_[index];
    Asked asked;
    asked.client = index;
    asked.operation = wire::operation_of(body);
    asked.epoch = client.epoch;
    asked.object = std::move(object);
    if (const auto* call = std::get_if<wire::CollectiveCall>(&body)) asked.round = call->round;
    if (const auto* call = std::get_if<wire::Regroup>(&body)) asked.round = call->attempt;
    if (const auto* call = std::get_if<wire::Send>(&body)) {
      asked.stream = {call->destination, call->tag};
    }
    if (const auto* call = std::get_if<wire::Receive>(&body)) {
      asked.stream = {call->source, call->tag};
    }
    const Duration timeout = std::chrono::milliseconds(below(8) * 500);
    asked.deadline = driver_.now + timeout;
    const std::uint64_t id = driver_.next_call_id();
    asked_.emplace(id, asked);
    driver_.call(client.connection, std::move(body), timeout);
    look();
  }

  void join(std::size_t index) {
    const auto size = static_cast<std::uint32_t>(below(20) == 0 ? 1 + below(4) : 3);
    const auto rank = static_cast<std::uint32_t>(below(4) == 0 ? below(size) : index % size);
    const Duration expiration = below(50) == 0 ? std::chrono::seconds(3) : std::chrono::seconds(2);
    ask(index, wire::Join{"g", rank, size, expiration, below(3) == 0, "info"});
  }

  void collective(std::size_t index) {
    Client& client = clients_[index];
    wire::CollectiveCall call;
    call.epoch = client.epoch;
    call.round = client.next_round++;
    // Mostly the same for all ranks of a round.
    const std::uint64_t kind = below(12) == 0 ? below(5) : (client.epoch + call.round) % 5;
    call.collective = static_cast<wire::Collective>(1 + kind);
    const bool rooted = call.collective != wire::Collective::barrier &&
                        call.collective != wire::Collective::all_gather;
    if (rooted && client.world_size > 0) {
      call.root = static_cast<std::uint32_t>(call.round % client.world_size);
    }
    const std::string value = std::to_string(client.epoch) + "/" + std::to_string(call.round);
    const bool from_root = call.collective == wire::Collective::broadcast ||
                           call.collective == wire::Collective::scatter;
    if (call.collective != wire::Collective::barrier && (!from_root || call.root == client.rank)) {
      const bool scatters = call.collective == wire::Collective::scatter;
      call.values.assign(scatters ? client.world_size : 1, value);
    }
    ask(index, std::move(call));
  }

  static std::string name_of_object(std::uint64_t epoch, std::uint32_t source,
                                    std::uint32_t destination, std::uint64_t tag,
                                    std::uint64_t sequence) {
    return std::to_string(epoch) + ":" + std::to_string(source) + "-" +
           std::to_string(destination) + ":" + std::to_string(tag) + ":" + std::to_string(sequence);
  }

  void send(std::size_t index) {
    Client& client = clients_[index];
    const auto to = static_cast<std::uint32_t>(below(3));
    const std::uint64_t tag = below(2);
    const std::uint64_t sequence = client.sent[{to, tag}];
    const std::string value = name_of_object(client.epoch, client.rank, to, tag, sequence);
    ask(index, wire::Send{client.epoch, to, tag, sequence, 0, value});
  }

  void receive(std::size_t index) {
    Client& client = clients_[index];
    const auto from = static_cast<std::uint32_t>(below(3));
    const std::uint64_t tag = below(2);
    const std::uint64_t sequence = client.received[{from, tag}];
    ask(index, wire::Receive{client.epoch, from, tag, sequence, 0},
        name_of_object(client.epoch, from, client.rank, tag, sequence));
  }

  void regroup(std::size_t index) {
    Client& client = clients_[index];
    const auto size = static_cast<std::uint32_t>(below(4));
    const auto least = static_cast<std::uint32_t>(below(2));
    ask(index, wire::Regroup{client.epoch, client.next_attempt++, client.next_round, size, least});
  }

  void abandon(std::size_t index) {
    std::vector<std::uint64_t> ids;
    for (auto& [id, asked] : asked_) {
      if (asked.client != index || below(2) == 0) continue;
      asked.may_lack_reply = true;
      ids.push_back(id);
    }
    driver_.apply(core::Abandoned{clients_[index].connection, &ids});
    look();
  }

  void drop(std::size_t index) {
    for (auto& [id, asked] : asked_) asked.may_lack_reply |= asked.client == index;
    const auto cause = below(2) == 0 ? core::DisconnectCause::closed : core::DisconnectCause::lost;
    driver_.apply(core::Disconnected{std::exchange(clients_[index].connection, 0), cause});
    look();
  }

  void come_back(std::size_t index) {
    Client& client = clients_[index];
    core::Hello hello;
    hello.connection = client.connection = driver_.next_connection();
    hello.hello.session_id = client.session;
    hello.hello.incarnation = 1;
    hello.hello.token = client.token;
    last_hello_ = {};
    driver_.apply(hello);
    look();
    if (last_hello_.status != 0) client = {};  // expired: it begins anew
  }

  void say_goodbye(std::size_t index) {
    for (auto& [id, asked] : asked_) asked.may_lack_reply |= asked.client == index;
    driver_.apply(core::Goodbye{clients_[index].connection});
    clients_[index] = {};
    look();
  }

  void acknowledge(std::size_t index) {
    Client& client = clients_[index];
    std::vector<std::uint64_t>& ids = client.to_acknowledge;
    for (std::size_t left = ids.size(); left > 1; --left) {
      std::swap(ids[left - 1], ids[below(left)]);
    }
    driver_.acknowledge(client.connection, std::exchange(ids, {}));
    look();
  }

  void pass() { wait(std::chrono::milliseconds(1 + below(600))); }

  void wait(Duration duration) {
    for (const Client& client : clients_) {
      if (client.connection != 0 && below(8) != 0) driver_.apply(core::Heard{client.connection});
    }
    look();
    driver_.pass(duration);
    look();
    for (const auto& entry : asked_) {
      const Asked& asked = entry.second;
      const bool waits_for_confirmation = asked.operation == wire::operation<wire::CollectiveCall>;
      if (asked.may_lack_reply || waits_for_confirmation) continue;
      CHECK_MESSAGE(asked.deadline + std::chrono::milliseconds(2) >= driver_.now, "no reply to ",
                    wire::name_of(asked.operation));
    }
  }

  /// Looks at the effects: every reply must be one that was asked for, and right.
  void look() {
    std::vector<core::Effect> effects;
    effects.swap(driver_.effects);
    for (const core::Effect& effect : effects) {
      if (const auto* hello = std::get_if<core::SendHello>(&effect)) last_hello_ = *hello->hello;
      if (const auto* reply = std::get_if<core::SendReply>(&effect)) look_at(*reply);
      if (const auto* close = std::get_if<core::Close>(&effect)) closed(close->connection);
    }
  }

  void closed(core::ConnectionId connection) {
    for (std::size_t index = 0; index < clients_.size(); ++index) {
      if (clients_[index].connection != connection) continue;
      for (auto& [id, asked] : asked_) asked.may_lack_reply |= asked.client == index;
      clients_[index] = {};
    }
  }

  void look_at(const core::SendReply& reply) {
    const auto found = asked_.find(reply.request_id);
    REQUIRE(found != asked_.end());
    const Asked asked = found->second;
    asked_.erase(found);
    Client& client = clients_[asked.client];
    client.to_acknowledge.push_back(reply.request_id);
    const Error error = error_in(reply);
    CHECK(error.code != ErrorCode::internal);
    const std::string body = body_of(reply);
    if (asked.operation == wire::operation<wire::CollectiveCall>) judge_round(asked, error, client);
    if (asked.operation == wire::operation<wire::Send> ||
        asked.operation == wire::operation<wire::Receive>) {
      judge_stream(asked, error, body, client);
    }
    const bool retries = error.code == ErrorCode::invalid_argument || error.code == ErrorCode::busy;
    if (asked.operation == wire::operation<wire::Regroup> && retries &&
        client.epoch == asked.epoch) {
      client.next_attempt = std::min(client.next_attempt, asked.round);
    }
    told_.insert(error.code);
    if (error.code == ErrorCode::stale_epoch && client.epoch == asked.epoch) client.epoch = 0;
    if (reply.code != 0) return;
    if (asked.operation == wire::operation<wire::Join> ||
        asked.operation == wire::operation<wire::Regroup>) {
      formed(wire::decode_body<wire::FormedReply>(body).value(), client);
    }
  }

  void judge_stream(const Asked& asked, const Error& error, std::string_view body, Client& client) {
    const bool receives = asked.operation == wire::operation<wire::Receive>;
    if (receives && error.code == ErrorCode{}) {
      CHECK(wire::decode_body<wire::ReceiveReply>(body).value().value == asked.object);
    }
    if (client.epoch != asked.epoch) return;
    std::uint64_t& next = (receives ? client.received : client.sent)[asked.stream];
    if (error.code == ErrorCode{} || error.code == ErrorCode::expired) ++next;
    if (error.code == ErrorCode::sequence_gap) next = error.expected;
  }

  void judge_round(const Asked& asked, const Error& error, Client& client) {
    const bool same_epoch = client.epoch == asked.epoch;
    if (error.code != ErrorCode{} && error.round == 0) {
      if (same_epoch) client.next_round = std::min(client.next_round, asked.round);
      return;  // it did not count
    }
    // A rank that errs late, and the loss of the epoch, are not the round's outcome.
    if (error.code == ErrorCode::rank_lost || error.code == ErrorCode::collective_mismatch ||
        error.code == ErrorCode::fenced || error.code == ErrorCode::stale_epoch ||
        error.code == ErrorCode::expired) {
      return;
    }
    const auto known = outcomes_.emplace(std::pair{asked.epoch, asked.round}, error.code).first;
    CHECK(known->second == error.code);
  }

  void formed(const wire::FormedReply& reply, Client& client) {
    CHECK(reply.epoch >= client.epoch);
    CHECK(reply.rank < reply.world_size);
    if (reply.epoch == client.epoch) return;
    CHECK(ranks_.emplace(reply.epoch, reply.rank).second);
    std::vector<std::uint64_t> to_acknowledge = std::move(client.to_acknowledge);
    Client next;
    next.connection = client.connection;
    next.session = client.session;
    next.token = client.token;
    next.epoch = reply.epoch;
    next.rank = reply.rank;
    next.world_size = reply.world_size;
    next.to_acknowledge = std::move(to_acknowledge);
    client = std::move(next);
  }

  Choices choices_;
  GroupDriver driver_;
  std::array<Client, 5> clients_;
  std::map<std::uint64_t, Asked> asked_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, ErrorCode> outcomes_;
  std::set<std::pair<std::uint64_t, std::uint32_t>> ranks_;
  wire::ServerHello last_hello_;
  std::set<ErrorCode> told_;
};

}  // namespace muster::test
