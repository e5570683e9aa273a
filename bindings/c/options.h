#pragma once

#include <functional>

#include "muster/c.h"
#include "muster/process_group_options.h"
#include "muster/store_options.h"

// Options of C as those of C++. What breaks its rule is thrown as `Refused`; null: all defaults.

namespace muster::c {

StoreOptions store_options_of(const muster_store_options* given);
SetOptions set_options_of(const muster_set_options* given);
GroupOptions group_options_of(const muster_group_options* given);
/// With `timeout` and `data_expiration` in the group's options, where the call takes them from.
HostedGroupOptions hosted_options_of(const muster_hosted_options* given);
RegroupOptions regroup_options_of(const muster_regroup_options* given);

/// Gives the error to the application, which owns it; null: none is told.
std::function<void(const Error& error)> event_of(muster_on_done told, void* user);

}  // namespace muster::c
