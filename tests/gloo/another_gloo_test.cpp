#include "gloo/another_gloo.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "muster/gloo.h"
#include "support/ranks.h"

namespace muster::gloo_internal {
namespace {

TEST_CASE("a Gloo that another library brings is found, and nothing is made beside it") {
  CHECK_FALSE(another_gloo());
  const std::string path = std::getenv("ANOTHER_GLOO");
  void* const other = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(other != nullptr);
  CHECK(another_gloo() == path);
  auto server = test::start_server();
  auto store = test::connect(server);
  auto group = test::join(store, "g", 0, 1);
  const Error error = test::must_fail(gloo::create(group));
  CHECK(error.code == ErrorCode::gloo);
  CHECK(error.detail.find(path) != std::string::npos);
  CHECK(error.rank_ranges == std::vector<RankRange>{{0, 0}});
  ::dlclose(other);
  CHECK_FALSE(another_gloo());
  test::must(gloo::create(group));
}

TEST_CASE("Debian's Gloo and the copy of it in a wheel are no other Gloo") {
  CHECK(is_own_gloo("/usr/lib/libgloo.so.0"));
  CHECK(is_own_gloo("libgloo.so.0.5.0"));
  CHECK(is_own_gloo("/venv/site-packages/muster.libs/libgloo-0a1b2c3d.so.0.5.0"));
  CHECK_FALSE(is_own_gloo("/usr/lib/libgloo.so.1"));
  CHECK_FALSE(is_own_gloo("/usr/lib/libgloo_cuda.so.0"));
  CHECK_FALSE(is_own_gloo("libgloo-0a1b2c3.so.0"));
  CHECK_FALSE(is_own_gloo("libgloo-0A1B2C3D.so.0"));
  CHECK_FALSE(is_own_gloo("/torch/lib/libtorch_cpu.so"));
  CHECK_FALSE(is_own_gloo(""));
}

}  // namespace
}  // namespace muster::gloo_internal
