#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "muster/process_group_options.h"

MUSTER_BEGIN_NAMESPACE

/// What a watch and its group share. A watch that goes waits for its handler, unless it goes in it.
class GroupWatch::Subscription {
 public:
  using Tell = std::function<void(const Error& error)>;

  explicit Subscription(Tell tell) : tell_(std::make_shared<const Tell>(std::move(tell))) {}

  void tell(const Error& error);
  void end();

 private:
  std::recursive_mutex mutex_;
  std::shared_ptr<const Tell> tell_;  ///< null: the watch is gone
};

MUSTER_END_NAMESPACE

namespace muster::client {

/// All watches of one group's handle. From any thread.
class GroupWatches {
 public:
  using Subscription = GroupWatch::Subscription;

  /// Tells it at once what others were told before, if that has ended something.
  GroupWatch add(Subscription::Tell tell);
  void tell(const Error& error);

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<Subscription>> subscriptions_;
  std::optional<Error> first_;
};

}  // namespace muster::client
