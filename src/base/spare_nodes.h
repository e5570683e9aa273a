#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace muster::base {

/// Nodes of a map or set that are kept for the next elements, so that elements that come and go
/// need no memory each time. No more than `nodes_max`: what was many once does not stay so.
template <class Container>
class SpareNodes {
 public:
  using Node = typename Container::node_type;
  static constexpr std::size_t nodes_max = 64;

  /// One that was kept, with whatever it held; empty when there is none.
  Node take() {
    if (nodes_.empty()) return {};
    Node node = std::move(nodes_.back());
    nodes_.pop_back();
    return node;
  }

  void keep(Node node) {
    if (nodes_.size() < nodes_max) nodes_.push_back(std::move(node));
  }

 private:
  std::vector<Node> nodes_;
};

}  // namespace muster::base
