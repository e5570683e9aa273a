#pragma once

#include <memory>
#include <utility>

#include "client/link/link.h"
#include "muster/store.h"

MUSTER_BEGIN_NAMESPACE

/// What the handles of one session share: the store and the groups made on it. The last of them
/// closes the link. Pending calls whose result is a handle (`connect_async`, `create_async`,
/// `regroup_async`) hold this, too; the others hold the link only.
class Store::Impl {
 public:
  /// In a forked child the last handle leaves everything as it is, but for the sockets.
  static std::shared_ptr<Impl> create(std::shared_ptr<client::Link> link);

  explicit Impl(std::shared_ptr<client::Link> link) : link_(std::move(link)) {}

  const std::shared_ptr<client::Link>& link() const { return link_; }

 private:
  std::shared_ptr<client::Link> link_;
};

MUSTER_END_NAMESPACE
