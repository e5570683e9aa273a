// Lets the checks of the tests' helpers, which are doctest's, end a fuzzer.
#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdio>
#include <cstdlib>

#include <doctest/doctest.h>

namespace {

struct Checks {
  Checks() {
    context.setAsDefaultForAssertsOutOfTestCases();
    context.setAssertHandler([](const doctest::AssertData& data) {
      std::fprintf(stderr, "does not hold: %s:%d: %s %s\n", data.m_file, data.m_line, data.m_expr,
                   data.m_decomp.c_str());
      std::abort();
    });
  }
  doctest::Context context;
};

const Checks checks;

}  // namespace
