#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "muster/environment.h"
#include "muster/result.h"
#include "runtime/environment_names.h"

namespace muster::runtime {

/// Reads the numbers of one environment for one call.
class EnvironmentReader {
 public:
  /// operation  the public call, for errors
  EnvironmentReader(const Environment& environment, std::string_view operation)
      : environment_(environment), operation_(operation) {}

  /// As Environment::find.
  Result<std::optional<FoundNumber>> find(JobNumber number) const;

  /// The same, but only what a launcher says, and nothing that is computed of other numbers.
  Result<std::optional<FoundNumber>> said(JobNumber number) const;

  /// The variable by which one file system is for all nodes, because it is 1; empty: there is none.
  std::string_view shared_file_system_variable() const;

  /// The variable's number: 0 or above, of sizes 1 or above.
  Result<std::optional<FoundNumber>> read(JobNumber number, std::string_view variable) const;

  /// "RANK=3", with what may be printed of the value.
  std::string shown(std::string_view variable) const;

  Error error(std::string detail) const;

 private:
  Result<std::optional<FoundNumber>> computed(JobNumber number) const;
  Result<std::optional<FoundNumber>> of_equal_nodes(JobNumber dividend) const;
  Result<std::optional<FoundNumber>> tasks_on_node() const;
  Result<std::optional<FoundNumber>> replica() const;
  Result<std::optional<FoundNumber>> among_those_with_its_files() const;
  bool counts(JobNumber number, Launcher launcher) const;
  bool agrees(std::string_view rank, std::string_view world_size) const;
  bool is_alone_in_its_pod() const;

  const Environment& environment_;
  std::string_view operation_;
};

}  // namespace muster::runtime
