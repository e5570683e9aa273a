#include "muster/values.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/failure.h"
#include "base/rank_ranges.h"
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

/// What a rank has given; without bytes of a number: it has called another collective.
struct Given {
  Number number;
  std::uint8_t operation = no_operation;

  bool is_like(const Given& other) const {
    return number.kind == other.number.kind && number.bytes == other.number.bytes &&
           operation == other.operation;
  }
};

Given decode(std::string_view bytes) {
  wire::Reader in(bytes);
  Given given;
  given.number.kind = static_cast<NumberKind>(in.u8());
  given.number.bytes = in.u8();
  given.operation = in.u8();
  given.number.bits = in.u64();
  return in.ok() && in.at_end() ? given : Given();
}

/// Also says where the ranks at fault run, as far as the server knows.
Error about(StatelessProcessGroup& group, std::string_view operation, Error error) {
  const auto members = group.members(std::chrono::seconds(5));
  for (RankReport& report : error.ranks) {
    report.joined = true;  // it has given a value
    if (!members.has_value()) continue;
    for (const MemberInfo& member : *members)
      if (member.rank == report.rank) report.process = member.process;
  }
  error.operation = operation;
  error.group = group.name();
  error.epoch = group.epoch();
  error.decided_by = "client";
  return error;
}

void blame(Error& error, int rank) {
  constexpr std::size_t listed_ranks_max = 64;
  if (error.ranks.size() < listed_ranks_max) error.ranks.emplace_back().rank = rank;
  base::add_to(error.rank_ranges, rank);
}

double floating(const Number& number) { return value_of<double>(number); }

// Wide enough for the sum of any number of ranks' integers, and for a product that has not left the
// range of 64 bits for good.
__extension__ using WideInteger = __int128;
__extension__ using WideNatural = unsigned __int128;

/// The result in a type of so many bytes, of the same kind; none: it does not fit.
std::optional<Number> narrowed(WideInteger value, const Number& like) {
  const int bits = like.bytes * 8;
  const std::int64_t max =
      bits == 64 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << (bits - 1)) - 1;
  if (value > max || value < WideInteger{-1} - max) return {};
  return Number{like.kind, like.bytes, static_cast<std::uint64_t>(value)};
}
std::optional<Number> narrowed(WideNatural value, const Number& like) {
  if (value >> (like.bytes * 8) != 0) return {};
  return Number{like.kind, like.bytes, static_cast<std::uint64_t>(value)};
}

/// none: it does not fit.
template <class Wide>
std::optional<Wide> combined(Wide a, Wide b, ReduceOp operation) {
  Wide result{};
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

/// Bits: of a number, std::int64_t or std::uint64_t.
template <class Bits, class Wide>
std::optional<Number> integers_combined(const std::vector<Number>& all, ReduceOp operation) {
  const bool has_zero =
      std::any_of(all.begin(), all.end(), [](const Number& each) { return each.bits == 0; });
  if (operation == ReduceOp::product && has_zero) return narrowed(Wide{0}, all.front());
  auto result = std::optional(Wide{static_cast<Bits>(all.front().bits)});
  for (std::size_t rank = 1; result && rank < all.size(); ++rank)
    result = combined(*result, Wide{static_cast<Bits>(all[rank].bits)}, operation);
  return result ? narrowed(*result, all.front()) : std::nullopt;
}

Number floats_combined(const std::vector<Number>& all, ReduceOp operation) {
  Number result = all.front();
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    result = rounded(combined(floating(result), floating(all[rank]), operation), result);
  if (operation != ReduceOp::average) return result;
  return rounded(floating(result) / static_cast<double>(all.size()), result);
}

/// none: it does not fit.
std::optional<Number> combined(const std::vector<Number>& all, ReduceOp operation) {
  switch (all.front().kind) {
    case NumberKind::floating: return floats_combined(all, operation);
    case NumberKind::integer: return integers_combined<std::int64_t, WideInteger>(all, operation);
    case NumberKind::boolean:
    case NumberKind::natural: return integers_combined<std::uint64_t, WideNatural>(all, operation);
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
  return "it is none of sum, product, max, min, average, bit_and, bit_or and bit_xor";
}

/// What most ranks have given; of equally many one that has a meaning, and the lowest rank's.
const Given& most_common(const std::vector<Given>& all) {
  std::map<std::tuple<NumberKind, std::uint8_t, std::uint8_t>, int> counts;
  const auto weight = [&](const Given& given) {
    const bool is_defined =
        refusal_of(given.number.kind, static_cast<ReduceOp>(given.operation)).empty();
    const auto key = std::tuple(given.number.kind, given.number.bytes, given.operation);
    return std::pair(counts[key], is_defined);
  };
  for (const Given& each : all) ++counts[{each.number.kind, each.number.bytes, each.operation}];
  return *std::max_element(all.begin(), all.end(),
                           [&](const Given& a, const Given& b) { return weight(a) < weight(b); });
}

/// Ranks whose number is of another type than the others', or for another operation.
std::optional<Error> disagreement(const std::vector<Given>& all) {
  Error error = base::failure(
      ErrorCode::mismatch, "a value of another type, or another operation, than the other ranks'");
  const Given& expected = most_common(all);
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (!all[rank].is_like(expected)) blame(error, static_cast<int>(rank));
  return error.rank_ranges.empty() ? std::nullopt : std::optional(std::move(error));
}

}  // namespace

Result<Number> broadcast_number(StatelessProcessGroup& group, const Number& own, Rank root,
                                Duration timeout) {
  const auto bytes = group.broadcast_obj<RawCodec>(encode(own, no_operation), root, timeout);
  if (!bytes) return bytes.error();
  const Given given = decode(*bytes);
  if (given.is_like({own, no_operation})) return given.number;
  Error error =
      base::failure(ErrorCode::mismatch, "the root's value is of another type than this rank's");
  blame(error, root.number);
  return about(group, "synchronize_value", std::move(error));
}

/// What one rank has given is judged by all, from the same bytes: so all get the same.
Result<Number> reduce_number(StatelessProcessGroup& group, const Number& own, ReduceOp operation,
                             Duration timeout) {
  constexpr std::string_view call = "all_reduce_value";
  const auto code = static_cast<std::uint8_t>(operation);
  const auto bytes = group.all_gather_obj<RawCodec>(encode(own, code), timeout);
  if (!bytes) return bytes.error();
  std::vector<Given> given;
  for (const std::string& each : *bytes) given.push_back(decode(each));
  if (auto found = disagreement(given)) return about(group, call, *std::move(found));
  if (const auto refusal = refusal_of(own.kind, operation); !refusal.empty()) {
    return about(group, call,
                 base::failure(ErrorCode::invalid_argument, "operation: " + std::string(refusal)));
  }
  std::vector<Number> all;
  for (const Given& each : given) all.push_back(each.number);
  if (auto result = combined(all, operation)) return *result;
  return about(group, call,
               base::failure(ErrorCode::out_of_range,
                             "the ranks' values together do not fit into the type"));
}

}  // namespace detail

MUSTER_END_NAMESPACE
