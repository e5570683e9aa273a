#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "guest_request.h"
#include "network.h"
#include "process.h"

namespace muster::sim {

/// One client of TCPStore's: it comes, asks without waiting for what it is told, and goes, in the
/// midst of something more often than not. The model judges what it is told.
class GuestWork {
 public:
  GuestWork(std::uint32_t number, Town& town, GuestModel& model);

  void begin();
  bool is_gone() const { return !connection_; }

 private:
  using Command = GuestRequest::Command;
  using Dialect = GuestRequest::Dialect;

  void later(Duration delay, void (GuestWork::*what)());
  void come();
  void work();
  void leave();
  void meet();
  void visit();
  void ask();
  GuestRequest any_request();
  GuestRequest of_first_dialect();
  GuestRequest of_second_dialect();
  GuestRequest of_newest_dialect();
  GuestRequest of_several_keys(Command command);
  GuestRequest nonsense();
  void say(const GuestRequest& request);
  std::string key();
  std::string value();
  std::string long_value();
  Random& random() { return town_.random; }

  const std::uint64_t client_;  ///< as the network knows it
  const std::string name_space_;
  Town& town_;
  GuestModel& model_;
  std::optional<Network::ConnectionId> connection_;
  Dialect dialect_ = Dialect::newest;
  std::int64_t met_ = 0;    ///< the last barrier
  std::uint64_t stay_ = 0;  ///< number of it, so that what is planned in one ends with it
};

}  // namespace muster::sim
