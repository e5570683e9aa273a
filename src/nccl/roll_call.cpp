#include "nccl/roll_call.h"

#include <cstdlib>
#include <map>
#include <utility>

#include "client/failure.h"
#include "communicator/report.h"
#include "nccl/functions.h"

namespace muster::nccl {

using communicator::append_number;
using communicator::append_trouble;
using communicator::Cursor;
using communicator::digest_of;
using communicator::Verdict;
using communicator::whose;

namespace {

constexpr char version_of_format = 1;

Verdict differs(std::string detail, std::function<bool(int rank)> is_at_fault) {
  return {client::failure(ErrorCode::mismatch, std::move(detail)), std::move(is_at_fault)};
}

std::optional<Verdict> verdict_on_terms(const std::vector<Presence>& presences) {
  const Presence& first = presences.front();
  for (const Presence& presence : presences) {
    if (presence.nccl_version != first.nccl_version) {
      return differs("NCCL " + version_text(presence.nccl_version) + ", rank 0 has NCCL " +
                         version_text(first.nccl_version),
                     whose(presences, [](const Presence& each, const Presence& of_rank_0) {
                       return each.nccl_version != of_rank_0.nccl_version;
                     }));
    }
    if (presence.terms != first.terms) {
      return differs("other options than rank 0's: warm_up, ctas_max",
                     whose(presences, [](const Presence& each, const Presence& of_rank_0) {
                       return each.terms != of_rank_0.terms;
                     }));
    }
  }
  return std::nullopt;
}

std::optional<Verdict> verdict_on_devices(const std::vector<Presence>& presences) {
  std::map<std::pair<std::uint64_t, Device::Uuid>, int> holders;
  for (const Presence& presence : presences) ++holders[{presence.host, presence.device_uuid}];
  const auto shares = [presences, holders](int rank) {
    const Presence& presence = presences[static_cast<std::size_t>(rank)];
    return holders.at({presence.host, presence.device_uuid}) > 1;
  };
  for (std::size_t rank = 0; rank < presences.size(); ++rank) {
    if (!shares(static_cast<int>(rank))) continue;
    return Verdict{client::failure(ErrorCode::duplicate_device, "they share a device"), shares};
  }
  return std::nullopt;
}

}  // namespace

std::string encode(const Presence& presence) {
  std::string out(1, version_of_format);
  append_number(out, static_cast<std::uint32_t>(presence.rank));
  append_number(out, presence.members);
  append_number(out, static_cast<std::uint32_t>(presence.nccl_version));
  out.append(presence.device_uuid.begin(), presence.device_uuid.end());
  append_number(out, presence.host);
  append_number(out, presence.terms);
  out.append(presence.process.bytes.begin(), presence.process.bytes.end());
  append_trouble(out, presence.trouble);
  return out;
}

Result<Presence> decode_presence(std::string_view bytes) {
  Cursor cursor(bytes);
  Presence presence;
  const char version = static_cast<char>(cursor.number<std::uint8_t>());
  presence.rank = static_cast<int>(cursor.number<std::uint32_t>());
  presence.members = cursor.number<std::uint64_t>();
  presence.nccl_version = static_cast<int>(cursor.number<std::uint32_t>());
  cursor.take(presence.device_uuid.data(), presence.device_uuid.size());
  presence.host = cursor.number<std::uint64_t>();
  presence.terms = cursor.number<std::uint64_t>();
  cursor.take(presence.process.bytes.data(), presence.process.bytes.size());
  presence.trouble = cursor.trouble();
  if (!cursor.is_good() || version != version_of_format) {
    return communicator::no_part_of_making();
  }
  return presence;
}

std::uint64_t host_digest() {
  const char* const given = std::getenv("NCCL_HOSTID");
  return given != nullptr ? digest_of(given) : communicator::host_digest();
}

std::optional<Verdict> verdict_on(const std::vector<Presence>& presences) {
  if (auto verdict = communicator::verdict_on_presence(presences)) return verdict;
  if (auto verdict = verdict_on_terms(presences)) return verdict;
  return verdict_on_devices(presences);
}

}  // namespace muster::nccl
