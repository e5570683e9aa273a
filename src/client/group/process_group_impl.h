#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "client/group/group.h"
#include "client/group/group_host.h"
#include "client/store/store_impl.h"
#include "muster/process_group.h"

MUSTER_BEGIN_NAMESPACE

/// What a handle holds: its part in the group, the store it was made on, and the server if this
/// process hosts it. They go in this order.
class StatelessProcessGroup::Impl {
 public:
  using Host = std::shared_ptr<client::GroupHost>;

  /// In a forked child the last handle leaves everything as it is, but for the sockets.
  static std::shared_ptr<Impl> create(std::shared_ptr<client::Group> group, Store store, Host host);

  /// Joins a group whose handle will also hold `host`. `timeout` is that of the joining alone.
  static Result<StatelessProcessGroup> join(const Store& store, std::string_view name, int rank,
                                            int world_size, const GroupOptions& options,
                                            Duration timeout, Host host);
  static Call join(const Store& store, std::string_view name, int rank, int world_size,
                   const GroupOptions& options, Handler<StatelessProcessGroup> handler);

  Impl(std::shared_ptr<client::Group> group, Store store, Host host)
      : host_(std::move(host)), store_(std::move(store)), group_(std::move(group)) {}

  client::Group& group() const { return *group_; }
  const std::shared_ptr<client::Link>& link() const { return group_->link(); }
  Store& store() { return store_; }
  const Host& host() const { return host_; }

 private:
  Host host_;
  Store store_;
  std::shared_ptr<client::Group> group_;
};

MUSTER_END_NAMESPACE
