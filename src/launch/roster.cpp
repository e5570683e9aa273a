#include "launch/roster.h"

#include <algorithm>
#include <utility>

namespace muster::launch {

void Roster::begin_to_wait(Instant now) {
  waits_since_ = now;
  told_ = now;
  contradicted_since_ = base::far_future;
  nodes_.clear();
}

void Roster::see(std::vector<Node> nodes, Instant now) {
  std::sort(nodes.begin(), nodes.end(),
            [](const Node& a, const Node& b) { return a.number < b.number; });
  // Who was told otherwise than the first leaves: it is not counted on.
  const auto is_other = [&nodes](const Node& node) { return node.terms != nodes.front().terms; };
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(), is_other), nodes.end());
  const bool are_same =
      std::equal(nodes.begin(), nodes.end(), nodes_.begin(), nodes_.end(),
                 [](const Node& a, const Node& b) { return a.number == b.number; });
  if (!are_same) changed_ = now;
  nodes_ = std::move(nodes);
}

const Node* Roster::contradicting(const std::vector<Node>& seen, std::uint64_t own_number,
                                  const JobOptions& options, Instant now) {
  const auto is_own = [own_number](const Node& node) { return node.number == own_number; };
  const auto first = std::min_element(
      seen.begin(), seen.end(), [](const Node& a, const Node& b) { return a.number < b.number; });
  const bool is_contradicted =
      std::any_of(seen.begin(), seen.end(), is_own) && first->terms != options.self.terms;
  contradicted_since_ = is_contradicted ? std::min(contradicted_since_, now) : base::far_future;
  const bool is_sure = is_contradicted && now - contradicted_since_ >= options.cause_timeout;
  return is_sure ? &*first : nullptr;
}

std::vector<Node> Roster::without(const std::vector<std::uint64_t>& numbers) const {
  std::vector<Node> found;
  std::copy_if(nodes_.begin(), nodes_.end(), std::back_inserter(found), [&](const Node& node) {
    return std::find(numbers.begin(), numbers.end(), node.number) == numbers.end();
  });
  return found;
}

std::vector<int> Roster::missing_of(const Plan& plan) const {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < plan.nodes.size(); ++rank) {
    const auto is_it = [&](const Node& node) { return node.number == plan.nodes[rank].number; };
    if (std::none_of(nodes_.begin(), nodes_.end(), is_it)) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

std::optional<std::string> Roster::progress(const JobOptions& options, Instant now) {
  constexpr Duration every = std::chrono::seconds(10);
  const auto count = static_cast<int>(nodes_.size());
  if (now - told_ < every || count >= options.nodes_max) return {};
  told_ = now;
  std::string text =
      "waiting for nodes: " + std::to_string(count) + " of " + std::to_string(options.nodes_min);
  if (options.nodes_max > options.nodes_min) text += " to " + std::to_string(options.nodes_max);
  text += " are here: " + list_of(nodes_);
  const auto is_told = [](const Node& node) { return node.wanted_rank.has_value(); };
  if (nodes_.empty() || !std::all_of(nodes_.begin(), nodes_.end(), is_told)) return text;
  std::string missing;
  for (int rank = 0; rank < options.nodes_max; ++rank) {
    const auto is_it = [rank](const Node& node) { return node.wanted_rank == rank; };
    if (std::none_of(nodes_.begin(), nodes_.end(), is_it))
      missing += (missing.empty() ? "; missing: node " : ", ") + std::to_string(rank);
  }
  return text + missing;
}

std::string list_of(const std::vector<Node>& nodes) {
  std::string text;
  for (const Node& node : nodes)
    text += (text.empty() ? "" : ", ") + node.host + " (pid " + std::to_string(node.pid) + ")";
  return text.empty() ? "nobody" : text;
}

}  // namespace muster::launch
