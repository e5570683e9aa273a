#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "muster/watch.h"
#include "server/metrics/publisher.h"
#include "server/watch/looks.h"
#include "server/watch/seen.h"

namespace muster::server {

/// What has happened to groups, as those know it who look: what is told is kept, to a limit.
class EventBook {
 public:
  void add(const core::History::Change& change, base::Instant taken, Duration to_wall);

  std::uint64_t last_change() const { return last_change_; }
  std::vector<std::shared_ptr<const WatchedEvent>> after(std::uint64_t change,
                                                         std::size_t count_max) const;

 private:
  static constexpr std::uint64_t bytes_max = 8u << 20;

  struct Entry {
    std::shared_ptr<const WatchedEvent> event;
    std::uint64_t bytes = 0;
  };

  void drop(std::map<std::uint64_t, Entry>::iterator entry);

  std::map<std::uint64_t, Entry> by_change_;
  std::map<std::uint64_t, std::uint64_t> change_of_serial_;
  std::uint64_t bytes_ = 0;
  std::uint64_t last_change_ = 0;
};

}  // namespace muster::server

MUSTER_BEGIN_NAMESPACE

/// What handles have of a server.
struct Watch::Source {
  server::Publisher<server::Seen> publisher;
  server::Looks looks;
  std::atomic<std::uint64_t> known_change{0};  ///< of the events, to those who look

  // Of those who look alone.
  std::mutex mutex;
  std::shared_ptr<const server::Seen> seen;
  std::shared_ptr<const Overview> overview;  ///< that of `seen`; null: none
  server::EventBook events;
};

MUSTER_END_NAMESPACE
