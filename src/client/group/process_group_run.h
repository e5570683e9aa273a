#pragma once

#include <memory>
#include <string_view>

#include "client/call.h"
#include "client/group/group.h"
#include "client/group/process_group_impl.h"

// How the calls of a group's handle run: `build(Group&)` prepares the call, in either form.

namespace muster::client {

template <class T, class Build>
Result<T> run_group(const std::shared_ptr<StatelessProcessGroup::Impl>& impl,
                    std::string_view operation, Build build) {
  if (!impl) return moved_from(operation);
  const std::shared_ptr<StatelessProcessGroup::Impl> held = impl;
  return block_on<T>(held->link(), operation, [&] { return build(held->group()); });
}

template <class T, class Build>
Call run_group(const std::shared_ptr<StatelessProcessGroup::Impl>& impl, std::string_view operation,
               Handler<T> handler, Build build) {
  if (!impl) {
    if (handler) handler(moved_from(operation));
    return {};
  }
  return start<T>(impl->link(), operation, std::move(handler),
                  [&] { return build(impl->group()); });
}

}  // namespace muster::client
