#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client.h"
#include "client/protocol/group_state.h"
#include "wire/reply.h"

namespace muster::sim {

/// One rank of a group that does what all ranks do: joins, passes `round_count` rounds, sends an
/// object to the next rank and receives one from the last before each, and leaves. Now and then it
/// gives a call up and recovers. Everything that it gets is what the others must have given.
class Rank {
 public:
  struct Plan {
    std::uint64_t seed = 0;
    std::uint32_t world_size = 0;
    std::uint64_t round_count = 0;
    Duration patience{};
  };

  Rank(std::uint32_t rank, Plan plan, Client& client, Scheduler& scheduler, Random& random)
      : rank_(rank), plan_(plan), client_(client), scheduler_(scheduler), random_(random) {}

  void join();
  bool has_left() const { return has_left_; }
  std::uint64_t recovered_count() const { return recovered_count_; }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  using Reply = Result<std::string>;
  using Use = std::function<void(const Reply& reply, protocol::Fate fate)>;

  void call(const wire::RequestBody& body, Use use);
  /// As `call`, and sometimes takes it back.
  void call_perhaps(const wire::RequestBody& body, Use use);

  void work();
  void send();
  void receive();
  void take_part();
  void after_round(const wire::RoundReply& reply);
  void recover(std::function<void(const wire::RecoverReply& reply)> then);
  void leave();

  wire::Collective collective() const;
  std::uint32_t root() const { return static_cast<std::uint32_t>(next_ % plan_.world_size); }
  bool brings_value() const;
  std::string value_of(std::uint32_t rank) const;
  std::vector<std::string> expected_values() const;
  void problem(std::string what);
  void unexpected(const std::string& what, const Error& error);

  std::uint32_t rank_;
  Plan plan_;
  Client& client_;
  Scheduler& scheduler_;
  Random& random_;
  std::unique_ptr<protocol::GroupState> state_;
  std::uint64_t next_ = 1;  ///< round
  bool has_left_ = false;
  std::uint64_t recovered_count_ = 0;
  std::vector<std::string> problems_;
};

}  // namespace muster::sim
