#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "muster/communicator.h"
#include "muster/span.h"
#include "muster/tensor.h"

namespace muster::runtime {

/// Why an operation has no meaning for a type of elements, with what to do; nothing: it has one.
/// Any number may be given for either.
std::optional<std::string> refusal_of(Dtype dtype, ReduceOp operation);

/// Combines elements of several sources: element i of `to` is the elements i of the sources,
/// combined in the order of the sources.
///
/// The bits of an element depend on the elements of its sources alone, not on its position, on
/// `count` or on where the memory is. Small floating-point types are combined in float32 and
/// rounded once. Integers wrap around. A nan stays a nan, but not which one. Of one source the
/// result is its copy.
///
/// to         may be one of the sources; overlaps none in another way
/// sources    at least one, each of `count` elements, at any address
/// operation  one that `refusal_of` does not refuse
void combine(void* to, Span<const void* const> sources, std::uint64_t count, Dtype dtype,
             ReduceOp operation);

}  // namespace muster::runtime
