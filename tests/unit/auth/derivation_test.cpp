#include "auth/derivation.h"

#include <set>
#include <string>

#include <doctest/doctest.h>

namespace {

TEST_CASE("an id and a secret are derived differently, and for each server name") {
  std::set<std::string> infos;
  for (const char* name : {"", "train", "secret", "id"}) {
    infos.insert(muster::auth::info_of_id(name));
    infos.insert(muster::auth::info_of_secret(name));
  }
  CHECK(infos.size() == 8);
}

}  // namespace
