#include "runtime/layout.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "base/failure.h"
#include "base/rank_ranges.h"
#include "muster/codec_raw.h"
#include "runtime/environment_reader.h"
#include "wire/reader.h"
#include "wire/writer.h"

namespace muster::runtime {

namespace {

constexpr std::uint8_t version_of_form = 1;

/// The numbers, in the order in which they travel.
constexpr std::array told_numbers{&Whereabouts::world_size,       &Whereabouts::rank,
                                  &Whereabouts::local_world_size, &Whereabouts::local_rank,
                                  &Whereabouts::node_count,       &Whereabouts::node_rank};

/// The first line of a file of the system; empty: it cannot be read.
std::string line_of(const char* path) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path, "re"));
  std::array<char, 256> line{};
  if (!file || !std::fgets(line.data(), line.size(), file.get())) return {};
  std::string text = line.data();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::uint64_t inode_of(const char* path) {
  struct stat status {};
  return ::stat(path, &status) == 0 ? status.st_ino : 0;
}

/// What makes a node. Of nodes that the launcher has numbered the number alone counts.
using NodeKey = std::tuple<int, std::string, std::string, std::uint64_t>;

NodeKey key_of(const Whereabouts& where, bool are_numbered) {
  if (are_numbered) return {*where.node_rank, "", "", 0};
  return {0, where.boot_id, where.host, where.network};
}

/// The ranks contradict each other. Each is named with the process that it is.
Error contradiction(const std::vector<Whereabouts>& all, const std::vector<int>& ranks,
                    std::string detail) {
  Error error = base::failure(ErrorCode::mismatch, std::move(detail));
  error.operation = "Runtime::init";
  error.decided_by = "client";
  for (const int rank : ranks) {
    base::add_to(error.rank_ranges, rank);
    if (error.ranks.size() == 64) continue;
    RankReport report;
    report.rank = rank;
    report.joined = true;
    report.process = all[static_cast<std::size_t>(rank)].process;
    error.ranks.push_back(std::move(report));
  }
  return error;
}

/// The ranks of each node, in order.
class Nodes {
 public:
  explicit Nodes(const std::vector<Whereabouts>& all) : all_(all) {
    are_numbered_ = std::all_of(all.begin(), all.end(),
                                [](const Whereabouts& where) { return where.node_rank; });
    std::map<NodeKey, std::size_t> found;
    for (int rank = 0; rank < static_cast<int>(all.size()); ++rank) {
      const auto [place, is_new] = found.emplace(key_of(of(rank), are_numbered_), nodes_.size());
      if (is_new) nodes_.emplace_back();
      nodes_[place->second].push_back(rank);
    }
  }

  /// What the ranks were told, against what they are.
  Result<void> check() const {
    for (const std::vector<int>& ranks : nodes_) {
      for (const auto& checked : {sizes(ranks), local_ranks(ranks)})
        if (!checked) return checked;
    }
    return counts();
  }

  std::vector<JobPlace> places() const {
    std::vector<JobPlace> places(all_.size());
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      const std::vector<int>& ranks = nodes_[node];
      const bool are_told =
          !have_own_devices(ranks) &&
          std::all_of(ranks.begin(), ranks.end(), [this](int rank) { return of(rank).local_rank; });
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        JobPlace& place = places[static_cast<std::size_t>(ranks[i])];
        place.rank = ranks[i];
        place.local_rank = are_told ? *of(ranks[i]).local_rank : static_cast<int>(i);
        place.local_world_size = static_cast<int>(ranks.size());
        place.node_rank = are_numbered_ ? *of(ranks[i]).node_rank : static_cast<int>(node);
        place.process = of(ranks[i]).process;
      }
    }
    return places;
  }

 private:
  const Whereabouts& of(int rank) const { return all_[static_cast<std::size_t>(rank)]; }

  std::string name(const std::vector<int>& ranks) const {
    const Whereabouts& first = of(ranks[0]);
    return are_numbered_ ? "node " + std::to_string(*first.node_rank) : "host " + first.host;
  }

  /// Whether each of several ranks was told that it is local rank 0, and not how many they are: so
  /// it is where each process sees one device only, as with Ray. Then 0 is the device.
  bool have_own_devices(const std::vector<int>& ranks) const {
    return ranks.size() > 1 && std::all_of(ranks.begin(), ranks.end(), [this](int rank) {
             return of(rank).local_rank == 0 && !of(rank).local_world_size;
           });
  }

  /// All ranks of the node were told how many they are, or nothing.
  Result<void> sizes(const std::vector<int>& ranks) const {
    std::vector<int> wrong;
    for (const int rank : ranks) {
      const auto told = of(rank).local_world_size;
      if (told && *told != static_cast<int>(ranks.size())) wrong.push_back(rank);
    }
    if (wrong.empty()) return {};
    return contradiction(all_, wrong,
                         "they were told a local_world_size of " +
                             std::to_string(*of(wrong[0]).local_world_size) + ", but " +
                             name(ranks) + " has " + std::to_string(ranks.size()) + " of the job");
  }

  /// Nobody has another's local rank, and none is beyond their number.
  Result<void> local_ranks(const std::vector<int>& ranks) const {
    if (have_own_devices(ranks)) return {};
    std::map<int, std::vector<int>> holders;
    for (const int rank : ranks)
      if (const auto told = of(rank).local_rank) holders[*told].push_back(rank);
    for (const auto& [local_rank, who] : holders) {
      if (who.size() > 1) {
        return contradiction(all_, who,
                             "each was told that it is local rank " + std::to_string(local_rank) +
                                 " of " + name(ranks));
      }
      if (local_rank >= static_cast<int>(ranks.size())) {
        return contradiction(all_, who,
                             "it was told that it is local rank " + std::to_string(local_rank) +
                                 ", but " + name(ranks) + " has " + std::to_string(ranks.size()) +
                                 " of the job");
      }
    }
    return {};
  }

  /// There are as many nodes as they were told, and all are numbered from 0.
  Result<void> counts() const {
    const auto count = static_cast<int>(nodes_.size());
    std::vector<int> wrong, beyond;
    for (int rank = 0; rank < static_cast<int>(all_.size()); ++rank) {
      if (const auto told = of(rank).node_count; told && *told != count) wrong.push_back(rank);
      if (are_numbered_ && *of(rank).node_rank >= count) beyond.push_back(rank);
    }
    if (wrong.empty() && beyond.empty()) return {};
    if (wrong.empty()) {
      return contradiction(all_, beyond,
                           "they were told that they are on node " +
                               std::to_string(*of(beyond[0]).node_rank) + ", but the job has " +
                               std::to_string(count) + " nodes, numbered from 0");
    }
    return contradiction(all_, wrong,
                         "they were told that the job has " +
                             std::to_string(*of(wrong[0]).node_count) + " nodes, but it has " +
                             std::to_string(count));
  }

  const std::vector<Whereabouts>& all_;
  bool are_numbered_ = false;
  std::vector<std::vector<int>> nodes_;
};

}  // namespace

Result<Whereabouts> own_whereabouts(const Environment& environment, const ProcessInfo& process) {
  Whereabouts where;
  where.process = process;
  where.host = environment.host_name();
  where.boot_id = line_of("/proc/sys/kernel/random/boot_id");
  where.network = inode_of("/proc/self/ns/net");
  where.shares_files =
      !EnvironmentReader(environment, "Runtime::init").shared_file_system_variable().empty();
  constexpr std::array numbers{JobNumber::world_size,       JobNumber::rank,
                               JobNumber::local_world_size, JobNumber::local_rank,
                               JobNumber::node_count,       JobNumber::node_rank};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto found = environment.find(numbers[i]);
    if (!found.has_value()) return found.error();
    if (*found && !(*found)->is_computed) where.*told_numbers[i] = (*found)->value;
  }
  return where;
}

std::string encode(const Whereabouts& where) {
  std::string bytes;
  wire::Writer out(bytes);
  out.u8(version_of_form);
  out.bytes(where.host);
  out.bytes(where.boot_id);
  out.u64(where.network);
  out.u8(where.shares_files ? 1 : 0);
  out.raw({reinterpret_cast<const char*>(where.process.id.bytes.data()),
           where.process.id.bytes.size()});
  out.bytes(where.process.host);
  out.u32(where.process.pid);
  out.bytes(where.process.label);
  for (const auto number : told_numbers) out.i32((where.*number).value_or(-1));
  return bytes;
}

Result<Whereabouts> decode_whereabouts(std::string_view bytes) {
  wire::Reader in(bytes);
  Whereabouts where;
  const bool is_ours = in.u8() == version_of_form;
  where.host = in.bytes();
  where.boot_id = in.bytes();
  where.network = in.u64();
  where.shares_files = in.u8() != 0;
  const std::string_view id = in.raw(where.process.id.bytes.size());
  std::copy(id.begin(), id.end(), where.process.id.bytes.begin());
  where.process.host = in.bytes();
  where.process.pid = in.u32();
  where.process.label = in.bytes();
  for (const auto number : told_numbers)
    if (const std::int32_t value = in.i32(); value >= 0) where.*number = value;
  if (is_ours && in.ok() && in.at_end()) return where;
  return base::failure(ErrorCode::protocol_error,
                       "a rank has told where it is in another form: use one version of Muster");
}

Result<std::vector<JobPlace>> lay_out(const std::vector<Whereabouts>& all) {
  const Nodes nodes(all);
  if (auto checked = nodes.check(); !checked) return std::move(checked).error();
  return nodes.places();
}

Result<Members> exchange_places(StatelessProcessGroup& group, const Environment& environment,
                                Duration timeout) {
  auto own = own_whereabouts(environment, group.store().process());
  if (!own) return std::move(own).error();
  const auto all = group.all_gather_obj<RawCodec>(encode(*own), timeout);
  if (!all) return all.error();
  std::vector<Whereabouts> found;
  Members members;
  members.share_files = true;
  for (const std::string& bytes : *all) {
    auto where = decode_whereabouts(bytes);
    if (!where) return std::move(where).error();
    members.world_ranks.push_back(static_cast<int>(found.size()));
    members.share_files = members.share_files && where->shares_files;
    found.push_back(*std::move(where));
  }
  auto places = lay_out(found);
  if (!places) return std::move(places).error();
  members.places = *std::move(places);
  return members;
}

}  // namespace muster::runtime
