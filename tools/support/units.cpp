#include "support/units.h"

#include <array>
#include <charconv>
#include <utility>

namespace tools {
namespace {

template <class Number>
std::optional<std::pair<Number, std::string_view>> leading_number(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{}) return std::nullopt;
  return std::pair(number, std::string_view(rest, static_cast<std::size_t>(end - rest)));
}

template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  const auto parts = leading_number<Number>(text);
  if (!parts || !parts->second.empty()) return std::nullopt;
  return parts->first;
}

template <class Units>
std::string in_largest_unit(std::uint64_t number, const Units& units) {
  for (const auto& [unit, factor] : units)
    if (number >= factor && number % factor == 0) return std::to_string(number / factor) + unit;
  return std::to_string(number) + units.back().first;
}

}  // namespace

std::string duration_text(muster::Duration duration) {
  constexpr std::array<std::pair<const char*, std::uint64_t>, 5> units = {
      {{"h", 3'600'000'000}, {"min", 60'000'000}, {"s", 1'000'000}, {"ms", 1'000}, {"us", 1}}};
  if (duration == duration.zero()) return "0s";
  return in_largest_unit(static_cast<std::uint64_t>(duration.count()), units);
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<std::pair<const char*, std::uint64_t>, 4> units = {
      {{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}};
  return in_largest_unit(bytes, units);
}

std::optional<muster::Duration> parse_duration(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 6> units = {
      {{"", 1e6}, {"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"min", 60e6}, {"h", 3600e6}}};
  constexpr double microseconds_max = 1e15;
  const auto parts = leading_number<double>(text);
  if (!parts || !(parts->first >= 0)) return std::nullopt;
  for (const auto& [unit, factor] : units) {
    const double microseconds = parts->first * factor;
    if (parts->second == unit && microseconds <= microseconds_max) {
      return muster::Duration(static_cast<muster::Duration::rep>(microseconds + 0.5));
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, int>, 5> units = {
      {{"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}}};
  const auto parts = leading_number<std::uint64_t>(text);
  if (!parts) return std::nullopt;
  for (const auto& [unit, shift] : units) {
    if (parts->second == unit && parts->first <= UINT64_MAX >> shift) return parts->first << shift;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  return whole_number<std::uint64_t>(text);
}

std::optional<std::int64_t> parse_signed_number(std::string_view text) {
  return whole_number<std::int64_t>(text);
}

std::optional<bool> parse_switch(std::string_view text) {
  for (const std::string_view yes : {"true", "yes", "on", "1"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"false", "no", "off", "0"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

}  // namespace tools
