#include "launch/plan.h"

#include <utility>

#include "wire/reader.h"
#include "wire/writer.h"

namespace muster::launch {

namespace {

void write(wire::Writer& out, const Node& node) {
  out.u64(node.number);
  out.bytes(node.host);
  out.i64(node.pid);
  out.i32(node.process_count);
  out.bytes(node.role);
  out.i32(node.wanted_rank.value_or(-1));
  out.bytes(node.terms);
}

Node read_node(wire::Reader& in) {
  Node node;
  node.number = in.u64();
  node.host = in.bytes();
  node.pid = in.i64();
  node.process_count = in.i32();
  node.role = in.bytes();
  if (const int rank = in.i32(); rank >= 0) node.wanted_rank = rank;
  node.terms = in.bytes();
  return node;
}

template <class T>
std::optional<T> whole(const wire::Reader& in, T value) {
  if (!in.ok() || !in.at_end()) return {};
  return value;
}

}  // namespace

int Plan::world_size() const { return base_rank_of(static_cast<int>(nodes.size())); }

int Plan::base_rank_of(int node_rank) const {
  int ranks = 0;
  for (int before = 0; before < node_rank; ++before)
    ranks += nodes[static_cast<std::size_t>(before)].process_count;
  return ranks;
}

int Plan::base_role_rank_of(int node_rank) const {
  const auto before = static_cast<std::size_t>(node_rank);
  return ranks_with(nodes[before].role, before);
}

int Plan::role_world_size_of(int node_rank) const {
  return ranks_with(nodes[static_cast<std::size_t>(node_rank)].role, nodes.size());
}

int Plan::ranks_with(const std::string& role, std::size_t count) const {
  int ranks = 0;
  for (std::size_t node = 0; node < count; ++node)
    if (nodes[node].role == role) ranks += nodes[node].process_count;
  return ranks;
}

std::optional<int> Plan::rank_of(std::uint64_t number) const {
  for (std::size_t rank = 0; rank < nodes.size(); ++rank)
    if (nodes[rank].number == number) return static_cast<int>(rank);
  return {};
}

std::string encode(const Node& node) {
  std::string bytes;
  wire::Writer out(bytes);
  write(out, node);
  return bytes;
}

std::string encode(const Plan& plan) {
  std::string bytes;
  wire::Writer out(bytes);
  out.i32(plan.attempt);
  out.i32(plan.restarts_used);
  out.u32(static_cast<std::uint32_t>(plan.nodes.size()));
  for (const Node& node : plan.nodes) write(out, node);
  return bytes;
}

std::string encode(const Verdict& verdict) {
  std::string bytes;
  wire::Writer out(bytes);
  out.u8(static_cast<std::uint8_t>(verdict.kind));
  out.i32(verdict.exit_code);
  out.bytes(verdict.text);
  out.u8(verdict.is_final ? 1 : 0);
  out.u32(static_cast<std::uint32_t>(verdict.nodes.size()));
  for (const std::uint64_t number : verdict.nodes) out.u64(number);
  return bytes;
}

std::string encode(const Ending& ending) {
  std::string bytes;
  wire::Writer out(bytes);
  out.i32(ending.exit_code);
  out.bytes(ending.text);
  return bytes;
}

std::optional<Node> decode_node(std::string_view bytes) {
  wire::Reader in(bytes);
  Node node = read_node(in);
  return whole(in, std::move(node));
}

std::optional<Plan> decode_plan(std::string_view bytes) {
  constexpr std::uint32_t node_bytes_min = 32;
  wire::Reader in(bytes);
  Plan plan;
  plan.attempt = in.i32();
  plan.restarts_used = in.i32();
  for (std::uint32_t left = in.count(node_bytes_min); left > 0; --left)
    plan.nodes.push_back(read_node(in));
  return whole(in, std::move(plan));
}

std::optional<Verdict> decode_verdict(std::string_view bytes) {
  wire::Reader in(bytes);
  Verdict verdict;
  verdict.kind = static_cast<Verdict::Kind>(in.u8());
  verdict.exit_code = in.i32();
  verdict.text = in.bytes();
  verdict.is_final = in.u8() != 0;
  for (std::uint32_t left = in.count(sizeof(std::uint64_t)); left > 0; --left)
    verdict.nodes.push_back(in.u64());
  return whole(in, std::move(verdict));
}

std::optional<Ending> decode_ending(std::string_view bytes) {
  wire::Reader in(bytes);
  Ending ending;
  ending.exit_code = in.i32();
  ending.text = in.bytes();
  return whole(in, std::move(ending));
}

std::string text_of(const Node& node, int node_rank) {
  return std::to_string(node_rank) + " (host " + node.host + ", pid " + std::to_string(node.pid) +
         ")";
}

}  // namespace muster::launch
