#include "auth/rights.h"

#include <string>

#include <doctest/doctest.h>

namespace {

using muster::auth::read_rights;
using muster::auth::Rights;
using muster::auth::rights_of;
using muster::wire::Right;
using muster::wire::Role;

constexpr Rights of_job = {Right::read, Right::write, Right::join, Right::observe,
                           Right::supervise};

TEST_CASE("rights are read by their names") {
  CHECK(read_rights("read") == Rights{Right::read});
  CHECK(read_rights("write") == Rights{Right::write});
  CHECK(read_rights("join") == Rights{Right::join});
  CHECK(read_rights("observe") == Rights{Right::observe});
  CHECK(read_rights("supervise") == Rights{Right::supervise});
  CHECK(read_rights("peer") == Rights{Right::peer});
  CHECK(read_rights("write,read") == Rights{Right::read, Right::write});
}

TEST_CASE("all is what a job needs, and admin has that, too") {
  const auto all = read_rights("all");
  CHECK(all == of_job);
  CHECK_FALSE(all->has(Right::admin));
  CHECK_FALSE(all->has(Right::peer));
  const auto admin = read_rights("admin");
  REQUIRE(admin);
  CHECK(admin->has(Right::admin));
  CHECK((*admin & of_job) == of_job);
  CHECK_FALSE(admin->has(Right::peer));
}

TEST_CASE("names that there are not, empty ones and those that add nothing are refused") {
  for (const char* const wrong : {"", ",", "read,", ",read", "read,,write", "Read", "read ",
                                  "reads", "none", "read,read", "all,read", "admin,all"}) {
    CAPTURE(wrong);
    CHECK_FALSE(read_rights(wrong));
  }
}

TEST_CASE("every set of rights is written and read again") {
  int sets_count = 0;
  for (unsigned mask = 1; mask < 128; ++mask) {
    Rights rights;
    for (unsigned bit = 0; bit < 7; ++bit) {
      if ((mask >> bit & 1U) != 0) rights.add(static_cast<Right>(bit));
    }
    const std::string text = to_string(rights);
    CAPTURE(text);
    CHECK(read_rights(text) == rights);
    ++sets_count;
  }
  CHECK(sets_count == 127);
  CHECK(to_string(Rights()).empty());
  CHECK(to_string(of_job) == "all");
  CHECK(to_string(Rights{Right::admin, Right::peer}) == "admin,peer");
  CHECK(to_string(Rights{Right::write, Right::read}) == "read,write");
}

TEST_CASE("two sets have in common what both have") {
  const Rights one{Right::read, Right::write};
  const Rights other{Right::write, Right::join};
  CHECK((one & other) == Rights{Right::write});
  CHECK((one & Rights()).is_empty());
  CHECK_FALSE(one.is_empty());
}

TEST_CASE("a role has the rights that it had") {
  CHECK(rights_of(Role::client) == Rights{Right::read, Right::write, Right::join, Right::observe});
  CHECK(rights_of(Role::observer) == Rights{Right::read, Right::write, Right::observe});
  CHECK(rights_of(Role::supervisor) == Rights{Right::admin});
}

}  // namespace
