#pragma once

#include "linearizability/history.h"

namespace muster::linear {

/// Whether there is an order of the operations in which each takes place at one instant between
/// call and answer, and a single key without clients beside it would have answered the same.
///
/// The algorithm is that of Wing and Gong, with the cache of Lowe: a search through the orders that
/// the times allow, which never looks twice at the same set of operations with the same value.
///
/// cost  exponential in how many calls are under way at the same time, else nearly linear
bool is_linearizable(const History& history);

}  // namespace muster::linear
