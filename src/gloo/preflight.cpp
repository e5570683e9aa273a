#include "gloo/preflight.h"

#include <algorithm>
#include <utility>

#include "client/failure.h"
#include "communicator/messages.h"

namespace muster::gloo_internal {

using communicator::append_number;
using communicator::MessageReader;
using communicator::ranks_where;
using communicator::Rejection;

namespace {

constexpr char version_of_format = 1;

std::string text_of(std::uint32_t version) {
  return std::to_string(version / 10000) + '.' + std::to_string(version / 100 % 100) + '.' +
         std::to_string(version % 100);
}

/// `is_odd` of a presence and rank 0's.
template <class IsOdd>
std::optional<Rejection> differs(const std::vector<PreflightReport>& reports, std::string detail,
                                 IsOdd is_odd) {
  const auto is_that = [&](const PreflightReport& each) { return is_odd(each, reports.front()); };
  if (std::none_of(reports.begin(), reports.end(), is_that)) return std::nullopt;
  return Rejection{client::failure(ErrorCode::mismatch, std::move(detail)),
                   ranks_where(reports, std::move(is_odd))};
}

}  // namespace

std::string encode(const PreflightReport& report) {
  std::string out(1, version_of_format);
  append_number(out, static_cast<std::uint32_t>(report.rank));
  append_number(out, report.members);
  out.append(report.process.bytes.begin(), report.process.bytes.end());
  append_number(out, report.terms);
  append_number(out, report.version);
  append_number(out, report.host);
  append_number(out, report.family);
  append_number(out, static_cast<std::uint8_t>(report.is_loopback));
  append_number(out, static_cast<std::uint32_t>(report.addresses.size()));
  for (const std::string& address : report.addresses) {
    append_number(out, static_cast<std::uint16_t>(address.size()));
    out += address;
  }
  communicator::append_failure(out, report.failure);
  return out;
}

Result<PreflightReport> decode_preflight(std::string_view bytes, int world_size) {
  MessageReader cursor(bytes);
  PreflightReport report;
  const char version = static_cast<char>(cursor.number<std::uint8_t>());
  report.rank = static_cast<int>(cursor.number<std::uint32_t>());
  report.members = cursor.number<std::uint64_t>();
  cursor.take(report.process.bytes.data(), report.process.bytes.size());
  report.terms = cursor.number<std::uint64_t>();
  report.version = cursor.number<std::uint32_t>();
  report.host = cursor.number<std::uint64_t>();
  report.family = cursor.number<std::uint8_t>();
  report.is_loopback = cursor.number<std::uint8_t>() != 0;
  const auto count = cursor.number<std::uint32_t>();
  if (count != 0 && count != static_cast<std::uint32_t>(world_size)) {
    return communicator::malformed_message();
  }
  for (std::uint32_t index = 0; index < count; ++index) {
    std::string address(cursor.number<std::uint16_t>(), '\0');
    cursor.take(address.data(), address.size());
    report.addresses.push_back(std::move(address));
  }
  report.failure = cursor.failure();
  const bool is_whole = report.failure.has_value() == report.addresses.empty();
  if (!cursor.is_good() || version != version_of_format || !is_whole) {
    return communicator::malformed_message();
  }
  return report;
}

std::optional<Rejection> find_rejection(const std::vector<PreflightReport>& reports) {
  if (auto verdict = communicator::find_common_rejection(reports)) return verdict;
  const PreflightReport& first = reports.front();
  if (auto verdict = differs(reports, "another Gloo than rank 0's " + text_of(first.version),
                             [](const PreflightReport& each, const PreflightReport& of_rank_0) {
                               return each.version != of_rank_0.version ||
                                      each.terms != of_rank_0.terms;
                             })) {
    return verdict;
  }
  if (auto verdict = differs(reports,
                             "an IPv" + std::to_string(first.family == 4 ? 6 : 4) +
                                 " address, rank 0 has an IPv" + std::to_string(first.family) +
                                 " one; set gloo::Options::address or gloo::Options::interface",
                             [](const PreflightReport& each, const PreflightReport& of_rank_0) {
                               return each.family != of_rank_0.family;
                             })) {
    return verdict;
  }
  const bool is_one_host = std::all_of(reports.begin(), reports.end(),
                                       [&](const auto& each) { return each.host == first.host; });
  if (is_one_host) return std::nullopt;
  return differs(
      reports,
      "it listens on loopback, and not all ranks are on its host; set "
      "gloo::Options::address or gloo::Options::interface",
      [](const PreflightReport& each, const PreflightReport&) { return each.is_loopback; });
}

}  // namespace muster::gloo_internal
