#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

// What an application might exchange, for the tests of the codecs.

namespace muster::test {

enum class Backend : std::uint16_t { none = 0, nccl = 7, gloo = 9 };

struct Shard {
  std::string name;
  std::vector<std::uint64_t> shape;
  double scale = 0;

  friend bool operator==(const Shard&, const Shard&) = default;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, shape, scale);
  }
};

struct Plan {
  std::int32_t version = 0;
  bool ready = false;
  Backend backend = Backend::none;
  std::vector<Shard> shards;
  std::map<std::string, std::vector<std::int16_t>> ranks_by_role;
  std::optional<Shard> spare;
  std::variant<int, std::string, Shard> extra;
  std::tuple<std::uint8_t, float, std::string> triple;
  std::chrono::milliseconds patience{0};
  std::vector<bool> flags;
  std::pair<char, std::int64_t> last;

  friend bool operator==(const Plan&, const Plan&) = default;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(version, ready, backend, shards, ranks_by_role, spare, extra, triple, patience, flags,
            last);
  }
};

/// Nests as deeply as the bytes say.
struct Tree {
  std::vector<Tree> children;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(children);
  }
};

/// Takes one byte on the wire and 4 KiB in memory.
struct Large {
  std::uint8_t number = 0;
  char unused[4096] = {};

  template <class Archive>
  void serialize(Archive& archive) {
    archive(number);
  }
};

inline Plan sample_plan() {
  Plan plan;
  plan.version = -3;
  plan.ready = true;
  plan.backend = Backend::nccl;
  plan.shards = {{"layer.0", {4096, 1024}, 0.5}, {"", {}, -1e300}};
  plan.ranks_by_role = {{"trainer", {0, 1, -2}}, {"", {}}, {"server", {7}}};
  plan.spare = Shard{"spare", {1}, 2};
  plan.extra = Shard{"extra", {2, 3}, 0};
  plan.triple = {255, 1.25F, std::string("zero\0byte", 9)};
  plan.patience = std::chrono::milliseconds(1500);
  plan.flags = {true, false, true};
  plan.last = {'x', INT64_MIN};
  return plan;
}

}  // namespace muster::test
