#include "muster/mesh.h"

#include <algorithm>
#include <utility>

#include "base/failure.h"

MUSTER_BEGIN_NAMESPACE

namespace {

Error refused(std::string operation, std::string detail) {
  Error error = base::failure(ErrorCode::invalid_argument, std::move(detail));
  error.operation = std::move(operation);
  return error;
}

/// Far more than there are ranks, and the product of two fits.
constexpr std::size_t ranks_max = std::size_t{1} << 31;

}  // namespace

Mesh::Mesh(std::vector<MeshDimension> dimensions, std::vector<int> ranks)
    : dimensions_(std::move(dimensions)), ranks_(std::move(ranks)) {}

Result<Mesh> Mesh::create(std::vector<MeshDimension> dimensions, std::vector<int> ranks) {
  const std::string operation = "Mesh::create";
  if (dimensions.empty()) return refused(operation, "a mesh has at least one dimension");
  std::size_t count = 1;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const auto& [name, size] = dimensions[i];
    if (size < 1) {
      return refused(operation,
                     "dimension '" + name + "' has size " + std::to_string(size) + ": above zero");
    }
    count *= static_cast<std::size_t>(size);
    if (count > ranks_max) return refused(operation, "more than 2^31 ranks");
    for (std::size_t j = 0; j < i; ++j)
      if (dimensions[j].name == name)
        return refused(operation, "there are two dimensions '" + name + "'");
  }
  if (ranks.empty()) {
    ranks.resize(count);
    for (std::size_t i = 0; i < count; ++i) ranks[i] = static_cast<int>(i);
  }
  if (ranks.size() != count) {
    return refused(operation, "there are " + std::to_string(ranks.size()) +
                                  " ranks for a mesh of " + std::to_string(count));
  }
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.front() < 0) return refused(operation, "a rank is below 0");
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    return refused(operation, "rank " + std::to_string(*twice) + " is there twice");
  return Mesh(std::move(dimensions), std::move(ranks));
}

std::optional<std::vector<int>> Mesh::coordinates(int rank) const {
  const auto place = std::find(ranks_.begin(), ranks_.end(), rank);
  if (place == ranks_.end()) return {};
  auto index = place - ranks_.begin();
  std::vector<int> coordinates(dimensions_.size());
  for (std::size_t i = dimensions_.size(); i-- > 0;) {
    coordinates[i] = static_cast<int>(index % dimensions_[i].size);
    index /= dimensions_[i].size;
  }
  return coordinates;
}

Result<std::vector<int>> Mesh::ranks_along(std::string_view dimension, int rank) const {
  const auto place = std::find(ranks_.begin(), ranks_.end(), rank);
  if (place == ranks_.end()) {
    return refused("Mesh::ranks_along", "rank " + std::to_string(rank) + " is not in the mesh");
  }
  std::size_t stride = 1;
  std::size_t along = dimensions_.size();
  while (along-- > 0 && dimensions_[along].name != dimension)
    stride *= static_cast<std::size_t>(dimensions_[along].size);
  if (along >= dimensions_.size()) {
    return refused("Mesh::ranks_along", "there is no dimension '" + std::string(dimension) + "'");
  }
  const auto size = static_cast<std::size_t>(dimensions_[along].size);
  const auto index = static_cast<std::size_t>(place - ranks_.begin());
  const std::size_t first = index - index / stride % size * stride;
  std::vector<int> ranks(size);
  for (std::size_t i = 0; i < size; ++i) ranks[i] = ranks_[first + i * stride];
  return ranks;
}

MUSTER_END_NAMESPACE
