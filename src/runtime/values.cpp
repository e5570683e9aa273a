#include "muster/values.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/failure.h"
#include "muster/codec_raw.h"
#include "wire/reader.h"
#include "wire/writer.h"

MUSTER_BEGIN_NAMESPACE

namespace detail {

namespace {

constexpr std::uint8_t no_operation = 0xff;

std::string encode(const Number& number, std::uint8_t operation) {
  std::string bytes;
  wire::Writer out(bytes);
  out.u8(static_cast<std::uint8_t>(number.kind));
  out.u8(number.bytes);
  out.u8(operation);
  out.u64(number.bits);
  return bytes;
}

/// none: another rank's number is of another type, or for another operation.
std::optional<Number> decode(std::string_view bytes, const Number& own, std::uint8_t operation) {
  wire::Reader in(bytes);
  Number number;
  number.kind = static_cast<NumberKind>(in.u8());
  number.bytes = in.u8();
  const std::uint8_t its_operation = in.u8();
  number.bits = in.u64();
  const bool is_same = in.ok() && in.at_end() && number.kind == own.kind &&
                       number.bytes == own.bytes && its_operation == operation;
  return is_same ? std::optional(number) : std::nullopt;
}

Error about(const StatelessProcessGroup& group, std::string_view operation, Error error) {
  error.operation = operation;
  error.group = group.name();
  error.epoch = group.epoch();
  error.decided_by = "client";
  return error;
}

Error mismatch(int rank, std::string detail) {
  Error error = base::failure(ErrorCode::mismatch, std::move(detail));
  error.ranks.emplace_back().rank = rank;
  error.rank_ranges = {{rank, rank}};
  return error;
}

double floating(const Number& number) { return value_of<double>(number); }

/// The result in a type of so many bytes, of the same kind; none: it does not fit.
std::optional<Number> integer(std::int64_t value, const Number& like) {
  const int bits = like.bytes * 8;
  const std::int64_t max =
      bits == 64 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << (bits - 1)) - 1;
  if (value > max || value < -max - 1) return {};
  return Number{like.kind, like.bytes, static_cast<std::uint64_t>(value)};
}
std::optional<Number> natural(std::uint64_t value, const Number& like) {
  if (like.bytes < 8 && value >> (like.bytes * 8) != 0) return {};
  return Number{like.kind, like.bytes, value};
}

template <class T>
std::optional<T> combined(T a, T b, ReduceOp operation) {
  T result{};
  switch (operation) {
    case ReduceOp::sum:
      if (__builtin_add_overflow(a, b, &result)) return {};
      return result;
    case ReduceOp::product:
      if (__builtin_mul_overflow(a, b, &result)) return {};
      return result;
    case ReduceOp::max: return std::max(a, b);
    case ReduceOp::min: return std::min(a, b);
    case ReduceOp::bit_and: return a & b;
    case ReduceOp::bit_or: return a | b;
    case ReduceOp::bit_xor: return a ^ b;
    case ReduceOp::average: break;
  }
  return {};
}

/// Rounded to the user's type at each step, as if that type had been added.
double combined(double a, double b, ReduceOp operation) {
  switch (operation) {
    case ReduceOp::sum:
    case ReduceOp::average: return a + b;
    case ReduceOp::product: return a * b;
    // As NCCL and Gloo do not promise: a nan stays a nan.
    case ReduceOp::max: return std::isnan(a) || a > b ? a : b;
    case ReduceOp::min: return std::isnan(a) || a < b ? a : b;
    case ReduceOp::bit_and:
    case ReduceOp::bit_or:
    case ReduceOp::bit_xor: break;  // refused before
  }
  return a;
}

Number rounded(double value, const Number& like) {
  if (like.bytes == sizeof(float)) value = static_cast<float>(value);
  Number number = number_of(value);
  number.bytes = like.bytes;
  return number;
}

/// none: it does not fit.
std::optional<Number> combined(const Number& a, const Number& b, ReduceOp operation) {
  switch (a.kind) {
    case NumberKind::floating: return rounded(combined(floating(a), floating(b), operation), a);
    case NumberKind::integer: {
      const auto both =
          combined(static_cast<std::int64_t>(a.bits), static_cast<std::int64_t>(b.bits), operation);
      return both ? integer(*both, a) : std::nullopt;
    }
    case NumberKind::boolean:
    case NumberKind::natural: {
      const auto both = combined(a.bits, b.bits, operation);
      return both ? natural(*both, a) : std::nullopt;
    }
  }
  return {};
}

/// Why an operation has no meaning for a kind of numbers; empty: it has one.
std::string_view refusal_of(NumberKind kind, ReduceOp operation) {
  switch (operation) {
    case ReduceOp::max:
    case ReduceOp::min: return {};
    case ReduceOp::sum:
    case ReduceOp::product:
    case ReduceOp::average:
      if (kind == NumberKind::boolean) {
        return "of a bool there are max (one is true), min (all are) and the operations on bits";
      }
      if (operation != ReduceOp::average || kind == NumberKind::floating) return {};
      return "integers have no average: convert them to double";
    case ReduceOp::bit_and:
    case ReduceOp::bit_or:
    case ReduceOp::bit_xor:
      if (kind != NumberKind::floating) return {};
      return "floating-point numbers have no operations on bits: give an integer";
  }
  return "it is not a ReduceOp";
}

}  // namespace

Result<Number> broadcast_number(StatelessProcessGroup& group, const Number& own, Rank root,
                                Duration timeout) {
  const auto bytes = group.broadcast_obj<RawCodec>(encode(own, no_operation), root, timeout);
  if (!bytes) return bytes.error();
  const auto number = decode(*bytes, own, no_operation);
  if (number) return *number;
  return about(group, "synchronize_value",
               mismatch(root.number, "the root's value is of another type than this rank's"));
}

Result<Number> reduce_number(StatelessProcessGroup& group, const Number& own, ReduceOp operation,
                             Duration timeout) {
  constexpr std::string_view call = "all_reduce_value";
  if (const auto refusal = refusal_of(own.kind, operation); !refusal.empty()) {
    return about(group, call,
                 base::failure(ErrorCode::invalid_argument, "operation: " + std::string(refusal)));
  }
  const auto code = static_cast<std::uint8_t>(operation);
  const auto all = group.all_gather_obj<RawCodec>(encode(own, code), timeout);
  if (!all) return all.error();
  std::optional<Number> result;
  for (int rank = 0; rank < static_cast<int>(all->size()); ++rank) {
    const auto number = decode((*all)[static_cast<std::size_t>(rank)], own, code);
    if (!number) {
      return about(group, call,
                   mismatch(rank,
                            "it gave a value of another type, or another operation, than "
                            "this rank"));
    }
    result = rank == 0 ? number : combined(*result, *number, operation);
    if (result) continue;
    return about(group, call,
                 base::failure(ErrorCode::out_of_range,
                               "the ranks' values together do not fit into the type"));
  }
  if (operation != ReduceOp::average) return *result;
  return rounded(floating(*result) / static_cast<double>(all->size()), own);
}

}  // namespace detail

MUSTER_END_NAMESPACE
