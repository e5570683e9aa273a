#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

namespace {

// A filter that no test case passes, such as a wrong --source-file, is a failure.
bool has_test_case = false;

struct CountedCases : doctest::IReporter {
  explicit CountedCases(const doctest::ContextOptions& /*options*/) {}
  void report_query(const doctest::QueryData& /*data*/) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& stats) override {
    has_test_case = stats.numTestCasesPassingFilters > 0;
  }
  void test_case_start(const doctest::TestCaseData& /*data*/) override {}
  void test_case_reenter(const doctest::TestCaseData& /*data*/) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& /*stats*/) override {}
  void test_case_exception(const doctest::TestCaseException& /*exception*/) override {}
  void subcase_start(const doctest::SubcaseSignature& /*subcase*/) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& /*data*/) override {}
  void log_message(const doctest::MessageData& /*data*/) override {}
  void test_case_skipped(const doctest::TestCaseData& /*data*/) override {}
};

REGISTER_LISTENER("counted_cases", 1, CountedCases);

}  // namespace

int main(int count, char** words) {
  doctest::Context context(count, words);
  const int status = context.run();
  return status == 0 && !has_test_case && !context.shouldExit() ? 1 : status;
}
