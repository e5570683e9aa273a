#pragma once

#include <array>
#include <cstddef>
#include <utility>

namespace muster::base {

/// Nodes of a map or set that are kept for the next elements, so that elements that come and go
/// need no memory each time. No more than `nodes_max`: what was many once does not stay so.
template <class Container>
class SpareNodes {
 public:
  using Node = typename Container::node_type;
  static constexpr std::size_t nodes_max = 64;

  /// One that was kept, with whatever it held; empty when there is none.
  Node take() noexcept { return count_ == 0 ? Node() : std::move(nodes_[--count_]); }

  void keep(Node node) noexcept {
    if (count_ < nodes_max) nodes_[count_++] = std::move(node);
  }

 private:
  std::array<Node, nodes_max> nodes_;
  std::size_t count_ = 0;
};

}  // namespace muster::base
