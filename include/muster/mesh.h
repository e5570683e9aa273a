#pragma once

// Ranks in a grid. In the library muster-runtime (CMake: Muster::runtime).

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/config.h"
#include "muster/result.h"

MUSTER_BEGIN_NAMESPACE

/// A dimension of a Mesh, such as {"data", 4}.
struct MeshDimension {
  std::string name;
  int size = 1;
};

/// Ranks in a grid of one or more dimensions, such as data x pipeline x tensor. A value: nothing is
/// sent, and each rank makes its own. `Runtime::subgroup` forms the group along a dimension.
///
/// The last dimension varies fastest: of {data: 2, tensor: 3} the ranks 0, 1, 2 are along `tensor`,
/// and 0, 3 along `data`.
///
/// threads  any
/// see      as torch.distributed.device_mesh
class MUSTER_API Mesh {
 public:
  /// dimensions  at least one; their names differ, their sizes are above zero
  /// ranks       in the order of the grid, each once, as many as the product of the sizes; empty:
  ///             0, 1, 2, ...
  /// errors      invalid_argument
  static Result<Mesh> create(std::vector<MeshDimension> dimensions, std::vector<int> ranks = {});

  const std::vector<MeshDimension>& dimensions() const { return dimensions_; }
  /// In the order of the grid.
  const std::vector<int>& ranks() const { return ranks_; }

  /// Where a rank is, one index for each dimension; none: it is not in the mesh.
  std::optional<std::vector<int>> coordinates(int rank) const;

  /// The ranks that differ from `rank` in this dimension alone, with itself, in their order.
  ///
  /// errors  invalid_argument (no such dimension, or the rank is not in the mesh)
  Result<std::vector<int>> ranks_along(std::string_view dimension, int rank) const;

 private:
  Mesh(std::vector<MeshDimension> dimensions, std::vector<int> ranks);

  std::vector<MeshDimension> dimensions_;
  std::vector<int> ranks_;
};

MUSTER_END_NAMESPACE
