#include "live/query.h"

#include <doctest/doctest.h>

using musterd::Query;

TEST_CASE("a parameter is found by its name, without its escapes") {
  const Query query("a=1&name=x%2Fy+z%00&empty=&alone&name=second");
  CHECK(query.value("name") == std::string("x/y z\0", 6));
  CHECK(query.value("a") == "1");
  CHECK(query.value("empty") == "");
  CHECK(query.value("alone") == "");
  CHECK(query.has("alone"));
  CHECK_FALSE(query.value("nam"));
  CHECK_FALSE(query.has("b"));
  CHECK_FALSE(Query("").has(""));
}

TEST_CASE("what nobody asked for, or twice, is a problem") {
  CHECK(Query("").problem({}).empty());
  CHECK(Query("a=1&&b&").problem({"a", "b"}).empty());
  CHECK(Query("a=1&a=2").problem({"a"}) == "the parameter a is there twice");
  CHECK(Query("c=1").problem({"a", "b"}) == "there is no parameter 'c' here, but a and b");
  CHECK(Query("c\n").problem({}) == "there is no parameter 'c\\x0a' here");
}

TEST_CASE("a wrong escape is no value") {
  for (const char* text : {"n=%", "n=%1", "n=%g0", "n=a%0g", "n=%%"}) {
    CHECK(Query(text).has("n"));
    CHECK_FALSE(Query(text).value("n"));
  }
}

TEST_CASE("a number has digits and nothing else") {
  CHECK(Query("n=12").number("n") == 12);
  CHECK(Query("n=18446744073709551615").number("n") == 18446744073709551615ULL);
  for (const char* text : {"n=", "n=-1", "n=1x", "n= 1", "n=18446744073709551616", "m=1"})
    CHECK_FALSE(Query(text).number("n"));
}
