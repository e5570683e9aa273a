#include "base/spare_nodes.h"

#include <map>
#include <string>

#include <doctest/doctest.h>

namespace muster::base {
namespace {

using Map = std::map<int, std::string>;

TEST_CASE("a spare node is the one that was kept, with what it held") {
  Map map{{1, "one"}};
  SpareNodes<Map> spares;
  CHECK(spares.take().empty());
  const std::string* const address = &map.at(1);
  spares.keep(map.extract(1));
  auto node = spares.take();
  REQUIRE_FALSE(node.empty());
  CHECK(node.mapped() == "one");
  node.key() = 2;
  map.insert(std::move(node));
  CHECK(&map.at(2) == address);
  CHECK(spares.take().empty());
}

TEST_CASE("no more nodes are kept than the limit says") {
  Map map;
  SpareNodes<Map> spares;
  for (int key = 0; key < 1000; ++key) {
    map[key];
    spares.keep(map.extract(key));
  }
  std::size_t kept = 0;
  while (!spares.take().empty()) ++kept;
  CHECK(kept == SpareNodes<Map>::nodes_max);
}

}  // namespace
}  // namespace muster::base
