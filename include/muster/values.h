#pragma once

// Values on which all ranks of a group agree. In the library muster-runtime (CMake:
// Muster::runtime). Objects are exchanged by the group's own calls, `broadcast_obj` and
// `all_gather_obj` (muster/process_group.h).

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "muster/communicator.h"
#include "muster/config.h"
#include "muster/process_group.h"
#include "muster/result.h"
#include "muster/span.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

namespace detail {

/// The kinds of numbers that are exchanged, so that ranks notice when theirs differ.
enum class NumberKind : std::uint8_t { boolean = 1, integer = 2, natural = 3, floating = 4 };

/// A number of the user's on its way.
struct Number {
  NumberKind kind = NumberKind::integer;
  std::uint8_t bytes = 0;  ///< of the user's type
  std::uint64_t bits = 0;  ///< of a bool, std::int64_t, std::uint64_t or double
};

template <class T>
constexpr NumberKind kind_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return NumberKind::boolean;
  } else if constexpr (std::is_floating_point_v<T>) {
    return NumberKind::floating;
  } else {
    return std::is_signed_v<T> ? NumberKind::integer : NumberKind::natural;
  }
}

template <class T>
Number number_of(T value) {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= sizeof(std::uint64_t),
                "a bool, an integer, a float or a double");
  Number number{kind_of<T>(), sizeof(T), 0};
  if constexpr (std::is_floating_point_v<T>) {
    const double wide = value;
    std::memcpy(&number.bits, &wide, sizeof wide);
  } else {
    number.bits = static_cast<std::uint64_t>(value);
  }
  return number;
}

template <class T>
T value_of(const Number& number) {
  if constexpr (std::is_floating_point_v<T>) {
    double wide = 0;
    std::memcpy(&wide, &number.bits, sizeof wide);
    return static_cast<T>(wide);
  } else {
    return static_cast<T>(number.bits);
  }
}

MUSTER_API Result<Number> broadcast_number(StatelessProcessGroup& group, const Number& own,
                                           Rank root, Duration timeout);
/// Combined in the order of ranks: floats in the user's type, integers without a bound.
MUSTER_API Result<Number> reduce_number(StatelessProcessGroup& group, const Number& own,
                                        ReduceOp operation, Duration timeout);

}  // namespace detail

/// Gives all ranks the root's value: a bool (a flag), an integer, a float or a double. Collective.
///
/// Blocks until the root has called it.
///
/// errors  mismatch (ranks: the root, whose value is of another type), those of a collective
/// cost    one round trip
/// see     as OLMo-core's synchronize_value and synchronize_flag
template <class T>
Result<T> synchronize_value(StatelessProcessGroup& group, T value, Rank root = Rank(0),
                            Duration timeout = default_timeout) {
  auto number = detail::broadcast_number(group, detail::number_of(value), root, timeout);
  if (!number) return std::move(number).error();
  return detail::value_of<T>(*number);
}

/// Combines one value of every rank into one, the same on all ranks to the last bit: every rank
/// computes in the order of ranks. Collective.
///
/// Blocks until all ranks have called it.
///
/// operation  of floats and doubles all but those on bits; of integers all but average; of bools
///            `max` (one is true), `min` (all are) and those on bits
/// errors     the same on all ranks: out_of_range (the sum or product of all integers does not
///            fit), invalid_argument (the operation of all), mismatch (ranks: with another type or
///            operation than most); those of a collective
/// cost       one round trip
/// see        as OLMo-core's all_reduce_value
template <class T>
Result<T> all_reduce_value(StatelessProcessGroup& group, T value,
                           ReduceOp operation = ReduceOp::sum, Duration timeout = default_timeout) {
  auto number = detail::reduce_number(group, detail::number_of(value), operation, timeout);
  if (!number) return std::move(number).error();
  return detail::value_of<T>(*number);
}

/// Gives all ranks the root's list. Collective.
///
/// objects  at the root: the list; at other ranks one of the same length
/// errors   mismatch (ranks: the root, whose list has another length: expected, actual), those of
///          `broadcast_obj`
/// cost     as `broadcast_obj`
/// see      as composer's broadcast_object_list
template <class Codec = DefaultCodec, class T>
Result<std::vector<T>> broadcast_list(StatelessProcessGroup& group, std::vector<T> objects,
                                      Rank root = Rank(0), Duration timeout = default_timeout) {
  const std::size_t length = objects.size();
  auto received = group.broadcast_obj<Codec>(objects, root, timeout);
  if (!received) return received;
  if (received->size() == length) return received;
  Error error;
  error.code = ErrorCode::mismatch;
  error.operation = "broadcast_list";
  error.group = group.name();
  error.epoch = group.epoch();
  error.expected = length;
  error.actual = received->size();
  error.ranks.emplace_back().rank = root.number;
  error.rank_ranges = {{root.number, root.number}};
  error.detail = "the root's list has " + std::to_string(error.actual) + " objects, this rank's " +
                 std::to_string(length);
  return error;
}

/// Combines an object over several groups, one after the other: what comes of the first goes into
/// the second. For a value that is to be the same along each dimension of a mesh. All ranks of each
/// group call it; null groups are left out.
///
/// combine  `combine(std::vector<T>) -> T`, of one object of each rank, in the order of ranks
/// see      as ModelOpt's DistributedProcessGroup.get_dist_syncd_obj
template <class Codec = DefaultCodec, class T, class Combine>
Result<T> synchronize_over(Span<StatelessProcessGroup* const> groups, T object, Combine combine,
                           Duration timeout = default_timeout) {
  for (StatelessProcessGroup* const group : groups) {
    if (group == nullptr) continue;
    auto all = group->all_gather_obj<Codec>(object, timeout);
    if (!all) return std::move(all).error();
    object = combine(*std::move(all));
  }
  return object;
}

MUSTER_END_NAMESPACE
