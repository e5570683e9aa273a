#include "nccl/preflight.h"

#include <cstdlib>
#include <map>
#include <utility>

#include "base/digest.h"
#include "client/failure.h"
#include "communicator/messages.h"
#include "nccl/functions.h"

namespace muster::nccl_internal {

using base::digest_of;
using communicator::append_failure;
using communicator::append_number;
using communicator::MessageReader;
using communicator::ranks_where;
using communicator::Rejection;

namespace {

constexpr char version_of_format = 1;

Rejection differs(std::string detail, std::function<bool(int rank)> is_at_fault) {
  return {client::failure(ErrorCode::mismatch, std::move(detail)), std::move(is_at_fault)};
}

std::optional<Rejection> verdict_on_terms(const std::vector<PreflightReport>& reports) {
  const PreflightReport& first = reports.front();
  for (const PreflightReport& report : reports) {
    if (report.nccl_version != first.nccl_version) {
      return differs(
          "NCCL " + version_text(report.nccl_version) + ", rank 0 has NCCL " +
              version_text(first.nccl_version),
          ranks_where(reports, [](const PreflightReport& each, const PreflightReport& of_rank_0) {
            return each.nccl_version != of_rank_0.nccl_version;
          }));
    }
    if (report.terms != first.terms) {
      return differs(
          "other options than rank 0's: warm_up, ctas_max",
          ranks_where(reports, [](const PreflightReport& each, const PreflightReport& of_rank_0) {
            return each.terms != of_rank_0.terms;
          }));
    }
  }
  return std::nullopt;
}

std::optional<Rejection> verdict_on_devices(const std::vector<PreflightReport>& reports) {
  std::map<std::pair<std::uint64_t, Device::Uuid>, int> holders;
  for (const PreflightReport& report : reports) ++holders[{report.host, report.device_uuid}];
  const auto shares = [reports, holders](int rank) {
    const PreflightReport& report = reports[static_cast<std::size_t>(rank)];
    return holders.at({report.host, report.device_uuid}) > 1;
  };
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    if (!shares(static_cast<int>(rank))) continue;
    return Rejection{client::failure(ErrorCode::duplicate_device, "they share a device"), shares};
  }
  return std::nullopt;
}

}  // namespace

std::string encode(const PreflightReport& report) {
  std::string out(1, version_of_format);
  append_number(out, static_cast<std::uint32_t>(report.rank));
  append_number(out, report.members);
  append_number(out, static_cast<std::uint32_t>(report.nccl_version));
  out.append(report.device_uuid.begin(), report.device_uuid.end());
  append_number(out, report.host);
  append_number(out, report.terms);
  out.append(report.process.bytes.begin(), report.process.bytes.end());
  append_failure(out, report.failure);
  return out;
}

Result<PreflightReport> decode_preflight(std::string_view bytes) {
  MessageReader cursor(bytes);
  PreflightReport report;
  const char version = static_cast<char>(cursor.number<std::uint8_t>());
  report.rank = static_cast<int>(cursor.number<std::uint32_t>());
  report.members = cursor.number<std::uint64_t>();
  report.nccl_version = static_cast<int>(cursor.number<std::uint32_t>());
  cursor.take(report.device_uuid.data(), report.device_uuid.size());
  report.host = cursor.number<std::uint64_t>();
  report.terms = cursor.number<std::uint64_t>();
  cursor.take(report.process.bytes.data(), report.process.bytes.size());
  report.failure = cursor.failure();
  if (!cursor.is_good() || version != version_of_format) {
    return communicator::malformed_message();
  }
  return report;
}

std::uint64_t host_digest() {
  const char* const given = std::getenv("NCCL_HOSTID");
  return given != nullptr ? digest_of(given) : communicator::host_digest();
}

std::optional<Rejection> find_rejection(const std::vector<PreflightReport>& reports) {
  if (auto verdict = communicator::find_common_rejection(reports)) return verdict;
  if (auto verdict = verdict_on_terms(reports)) return verdict;
  return verdict_on_devices(reports);
}

}  // namespace muster::nccl_internal
