#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client.h"
#include "oracle.h"
#include "plan.h"
#include "registry.h"

namespace muster::sim {

class GroupWork;
class StoreWork;
class StrangerWork;
class WatchWork;

/// What all processes share.
struct Town {
  const Plan& plan;
  Scheduler& scheduler;
  Random& random;
  Network& network;
  Server& server;
  Oracle& oracle;
  Trace& trace;
  Registry& registry;
  bool is_closing = false;  ///< no new work
  std::uint64_t uses = 0;   ///< numbers that make values unique
};

/// One process of the application, from its start to its end, as far as it is in one namespace:
/// its store, its places in groups, and what it does with them when calls fail.
class Process {
 public:
  using Reply = Result<std::string>;
  using Use = std::function<void(const Reply& reply, protocol::Fate fate)>;

  Process(const Identity& identity, std::uint32_t slot, Town& town, Clock clock);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void begin();
  /// Another part of the same process, in another namespace: they stop and die together.
  void set_twin(Process& twin);
  /// This part and its twin, if it has one.
  std::vector<Process*> parts();
  void die(Client::Death death);
  /// Ends its work in order: leaves, and says goodbye.
  void close();

  bool is_alive() const { return is_alive_; }
  bool is_over() const { return !is_alive_ || has_closed_; }
  bool can_run() const { return is_alive_ && !has_closed_ && !client_.is_stopped(); }
  std::uint64_t number() const { return identity_.number; }
  const Identity& identity() const { return identity_; }
  /// The keys of one namespace of one start of the server.
  std::uint64_t table() const { return table_of(client_.incarnation(), identity_.name_space); }
  std::uint32_t slot() const { return slot_; }
  Client& client() { return client_; }
  /// Whether it has a handle of the group, or a call that may give it one, or end its membership.
  bool may_be_in(std::string_view group) const;
  std::uint64_t joins_made(std::string_view group) const;
  Town& town() { return town_; }

  /// A call of the application, told to the oracle. Returns its number there.
  std::uint64_t ask(Ask ask, const wire::RequestBody& body, Use use,
                    protocol::Receipt receipt = protocol::Receipt::at_once);
  /// What a handle does as it is destroyed. Nobody waits for it.
  void leave(std::uint64_t epoch, std::function<void(bool is_done)> then);
  void cancel(std::uint64_t number);
  /// Asks the server to end a take, which then surely has not happened, or to answer it.
  void take_back(std::uint64_t number);
  /// When this process runs, and is not over.
  void later(Duration delay, std::function<void()> what);

 private:
  void told(const wire::Event& event);
  void session_ended();
  void leave_groups(std::size_t first);
  void reopen_if_over();
  void say_goodbye();

  Identity identity_;
  std::uint32_t slot_;
  Town& town_;
  Client client_;
  bool is_alive_ = true;
  bool has_closed_ = false;
  std::map<std::uint64_t, protocol::CallId> calls_;
  std::unique_ptr<StoreWork> store_work_;
  std::vector<std::unique_ptr<GroupWork>> group_works_;
  std::unique_ptr<WatchWork> watch_work_;
  std::unique_ptr<StrangerWork> stranger_work_;
  Process* twin_ = nullptr;
};

}  // namespace muster::sim
