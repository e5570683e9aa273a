#include "failures/shard.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include <doctest/doctest.h>

#include "failures/key_file.h"
#include "support/scale.h"

namespace muster::test {
namespace {

constexpr double few = 4;  // of a small number that is drawn

/// One in so many is tried on the scale 1. What TLS adds is a small part of what there is with it,
/// and OpenSSL asks for memory thousands of times.
std::uint64_t one_in(Fails what) {
  if (what == Fails::openssl) return 500;
  return is_tls() ? 100 : 20;
}

/// Of all that is chosen: given, or another one each day.
std::uint64_t seed() {
  if (const char* const text = std::getenv("MUSTER_TEST_SEED")) {
    return std::strtoull(text, nullptr, 10);
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::hours>(now).count()) /
         24;
}

}  // namespace

std::vector<FailurePlan> plans(Fails what, std::uint64_t in_a_row, std::uint64_t count) {
  std::vector<FailurePlan> plans;
  if (const char* const only = std::getenv("MUSTER_TEST_PLAN")) {
    const std::string_view text(only);
    FailurePlan plan{what, 0, in_a_row};
    const auto colon = text.find(':');
    if (colon != std::string_view::npos) plan.which = std::strtoull(only + colon + 1, nullptr, 10);
    if (text_of(plan) == text) plans.push_back(plan);
    return plans;
  }
  std::uint64_t part = 0;
  std::uint64_t parts = 1;
  if (const char* const text = std::getenv("MUSTER_TEST_SHARD")) {
    char* end = nullptr;
    part = std::strtoull(text, &end, 10);
    parts = std::strtoull(end + 1, nullptr, 10);
  }
  const std::uint64_t of_each = one_in(what);
  const std::uint64_t tried_count = std::min(scaled((count + of_each - 1) / of_each), count);
  const std::uint64_t stride = (count + tried_count - 1) / tried_count;
  const std::uint64_t offset = seed() % stride * tried_count;
  MESSAGE("seed ", seed());
  for (std::uint64_t index = part; index < tried_count; index += parts) {
    plans.push_back({what, 1 + (index * count + offset) / tried_count, in_a_row});
  }
  return plans;
}

std::string again(FailurePlan plan) {
  std::string command;
  if (const char* const musterd = std::getenv("MUSTERD_FAILING")) {
    command = std::string("MUSTERD_FAILING=") + musterd + " ";
  }
  if (is_tls()) command += "MUSTER_TEST_TLS=1 ";
  command += "MUSTER_TEST_PLAN=" + text_of(plan) + " ";
  return command + std::filesystem::read_symlink("/proc/self/exe").string();
}

void Tally::check(double refused_share_max, double ended_share_max) const {
  const std::string text = std::to_string(planned) + " planned, " + std::to_string(struck) +
                           " struck, " + std::to_string(refused) + " did not start, " +
                           std::to_string(ended) + " ended";
  const auto bound = [this](double share) {
    return share > 0 ? share * static_cast<double>(planned) + few : 0;
  };
  INFO(text);
  CHECK(4 * (struck + 1) >= 3 * planned);
  CHECK(static_cast<double>(refused) <= bound(refused_share_max));
  CHECK(static_cast<double>(ended) <= bound(ended_share_max));
  MESSAGE(text);
}

}  // namespace muster::test
