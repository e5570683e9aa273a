#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "hostile/swarm.h"

namespace muster::hostile {

/// What an attack is given: its clients, its arguments, and whoever tells it when to begin.
class Stage {
 public:
  Stage(Swarm& its_swarm, std::map<std::string, std::string> arguments)
      : swarm(its_swarm), arguments_(std::move(arguments)) {}

  Swarm& swarm;

  std::uint64_t number(const std::string& name, std::uint64_t otherwise) const;
  std::string text(const std::string& name, const std::string& otherwise) const;
  /// As `from` and `addresses` say.
  Sources sources() const;
  /// A hello for the namespace that `namespace` names.
  wire::ClientHello hello() const;

  /// Says that all is there that the attack needs, and waits for the order to begin.
  void ready();
  /// Whether the order to stop has not come yet.
  bool goes_on() const { return swarm.told_count() < 2; }
  /// Does nothing more until then.
  void hold();

 private:
  std::map<std::string, std::string> arguments_;
};

/// What an attack has to tell of itself in the end.
using Figures = nlohmann::json;
using Attack = Figures (*)(Stage& stage);

// Connections and sessions.
Figures half_hellos(Stage& stage);
Figures newcomers(Stage& stage);
Figures garbage(Stage& stage);
Figures begin_and_end(Stage& stage);
Figures blind_writes(Stage& stage);

// Memory and places.
Figures name_spaces(Stage& stage);
Figures groups(Stage& stage);
Figures leak(Stage& stage);
Figures fill(Stage& stage);
Figures parked(Stage& stage);
Figures objects(Stage& stage);
Figures non_readers(Stage& stage);
Figures unread(Stage& stage);

// Single events that concern very many.
Figures bound_keys(Stage& stage);
Figures waiters(Stage& stage);
Figures one_group(Stage& stage);
Figures one_round(Stage& stage);
Figures large_value(Stage& stage);
Figures ended_group(Stage& stage);
Figures removed_values(Stage& stage);

// Requests.
Figures flood(Stage& stage);
Figures old_ids(Stage& stage);
Figures unacknowledged(Stage& stage);
Figures observer(Stage& stage);
Figures names(Stage& stage);

// At the port for programs that use TCPStore.
Figures tcpstore_parts(Stage& stage);
Figures tcpstore_garbage(Stage& stage);
Figures tcpstore_multi_set(Stage& stage);
Figures tcpstore_non_readers(Stage& stage);
Figures tcpstore_lists(Stage& stage);
Figures tcpstore_waits(Stage& stage);
Figures tcpstore_unread(Stage& stage);

}  // namespace muster::hostile
