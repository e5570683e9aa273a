// Measures calls of muster-runtime between ranks that are processes of this host, and the same by
// Gloo in the same processes, in turns:
//
//     runtime_ranks QUESTION [--ranks 2] [--bytes 1048576] [--subject shared_memory] [--rounds 5]
//
// QUESTION is synchronize_value, all_reduce or gather. Prints a line of JSON for each round of each
// case. `tools/dev bench --runtime` runs it beside torch, and makes a report.

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <stdexcept>

#include <CLI/CLI.hpp>

#include "runtime/questions.h"

namespace muster::bench {

bool Asked::wants(std::string_view subject) const {
  return subjects.empty() || std::find(subjects.begin(), subjects.end(), subject) != subjects.end();
}

void record(std::string_view question, const Json& parameters, std::string_view subject,
            const Json& values) {
  const Json line = {
      {"question", question}, {"parameters", parameters}, {"subject", subject}, {"values", values}};
  std::cout << line.dump() << std::endl;
}

namespace {

using Measure = void (*)(const BenchServer& server, const Asked& asked);
const std::map<std::string, Measure> runtime_questions = {
    {"synchronize_value", measure_synchronize_value},
    {"all_reduce", measure_all_reduce},
    {"gather", measure_gather}};

/// As the build places it.
std::string musterd_of_build() {
  const auto own = std::filesystem::read_symlink("/proc/self/exe");
  return (own.parent_path().parent_path() / "tools" / "musterd").string();
}

int run_question(int argc, char** argv) {
  CLI::App app("Measures calls of muster-runtime between processes of this host.");
  std::string question;
  std::string musterd = musterd_of_build();
  Asked asked;
  app.add_option("QUESTION", question, "synchronize_value, all_reduce or gather.")
      ->required()
      ->check(CLI::IsMember(runtime_questions));
  app.add_option("--musterd", musterd, "The program; else that of the same build.");
  app.add_option("--ranks", asked.ranks, "Only so many ranks; repeatable.");
  app.add_option("--bytes", asked.bytes, "Only so many bytes; repeatable.");
  app.add_option("--subject", asked.subjects, "Only this one, such as gloo; repeatable.");
  app.add_option("--rounds", asked.rounds, "Of each case.");
  CLI11_PARSE(app, argc, argv);
  const BenchServer server(musterd);
  runtime_questions.at(question)(server, asked);
  return 0;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  try {
    return muster::bench::run_question(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
