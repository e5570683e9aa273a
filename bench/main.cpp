// Measures Muster, a bare echo server, and its peers, in one run and interleaved, and writes what
// was found as one JSON file. `tools/dev bench` builds it, finds the programs and makes the report.

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <system_error>

#include <CLI/CLI.hpp>

#include "machine.h"
#include "questions/questions.h"

namespace muster::bench {
namespace {

struct Arguments {
  std::vector<std::string> questions;
  Extent extent = Extent::full;
  std::vector<std::string> only;
  Programs programs;
  std::string output = "-";
  bool lists = false;
};

void take_arguments(CLI::App& app, Arguments& given) {
  app.add_option("QUESTION", given.questions,
                 "Only these, or those of this page; --list tells which there are.");
  app.add_flag("--list", given.lists, "Lists the questions, and ends.");
  const std::map<std::string, Extent> extents = {
      {"tiny", Extent::tiny}, {"quick", Extent::quick}, {"full", Extent::full}};
  app.add_option("--extent", given.extent, "tiny: seconds; quick: 2 minutes; full: 40 minutes.")
      ->transform(CLI::CheckedTransformer(extents));
  app.add_option("--only", given.only, "Only cases with this, such as connections=64; repeatable.")
      ->allow_extra_args(false);
  app.add_option("--output", given.output, "The JSON file; -: the standard output.");
  Programs& programs = given.programs;
  app.add_option("--echo-server", programs.echo_server, "The program.")->required();
  app.add_option("--musterd", programs.musterd, "The program.")->required();
  app.add_option("--redis", programs.redis, "redis-server; without it redis takes no part.");
  app.add_option("--memcached", programs.memcached, "The program; the same.");
  app.add_option("--etcd", programs.etcd, "The program; the same.");
  app.add_option("--tcpstore-server", programs.tcpstore_server, "The script; the same.");
  app.add_option("--libuv-python", programs.libuv_python,
                 "A Python that finds a torch with a TCPStore by libuv, for the script; the same.");
  app.add_option("--python", programs.python, "A Python that finds torch, for the script.")
      ->default_val("/usr/bin/python3");
}

std::vector<Kind> kinds_of(const Programs& programs) {
  std::vector<Kind> kinds = {Kind::echo, Kind::muster};
  if (!programs.redis.empty()) kinds.push_back(Kind::redis);
  if (!programs.memcached.empty()) kinds.push_back(Kind::memcached);
  if (!programs.etcd.empty()) kinds.push_back(Kind::etcd);
  kinds.push_back(Kind::muster_tcpstore);
  if (!programs.tcpstore_server.empty()) kinds.push_back(Kind::tcpstore);
  if (!programs.tcpstore_server.empty() && !programs.libuv_python.empty()) {
    kinds.push_back(Kind::tcpstore_libuv);
  }
  return kinds;
}

/// Each rank is a socket here and one in the server, which inherits this.
void allow_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

bool is_asked(const Arguments& given, const Question& question) {
  if (given.questions.empty()) return question.page.empty();
  return std::any_of(given.questions.begin(), given.questions.end(),
                     [&](const std::string& name) { return question.goes_by(name); });
}

std::string_view name_of(Extent extent) {
  return extent == Extent::tiny ? "tiny" : extent == Extent::quick ? "quick" : "full";
}

Run::Filter filter_of(const Arguments& given) {
  Run::Filter filter;
  for (const std::string& pair : given.only) {
    const auto equals = pair.find('=');
    if (equals == std::string::npos) throw std::runtime_error("--only NAME=VALUE, not " + pair);
    filter[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return filter;
}

/// It goes with this object, and what is in it.
class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_((std::filesystem::temp_directory_path() / "muster-bench-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), "no temporary folder " + path_);
    }
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Json measure(const Arguments& given) {
  Json report = {{"machine", describe_machine()},
                 {"programs", describe_programs(given.programs)},
                 {"extent", name_of(given.extent)}};
  Run run(given.programs, kinds_of(given.programs), given.extent, filter_of(given));
  Json durations;
  for (const Question& question : all_questions()) {
    if (!is_asked(given, question)) continue;
    if (!question.page.empty()) report["page"] = question.page;
    run.say(std::string(question.name) + ": " + std::string(question.what));
    const auto began = Clock::now();
    try {
      question.measure(run);
    } catch (const std::exception& error) {
      run.excuse(question.name, error.what());
    }
    durations[std::string(question.name)] = microseconds_since(began) / 1e6;
  }
  report["seconds"] = std::move(durations);
  report.update(run.result());
  return report;
}

int run(int argc, char** argv) {
  CLI::App app(
      "Measures Muster and others. docs/benchmarks/README.md says how, and what it means.");
  Arguments given;
  take_arguments(app, given);
  CLI11_PARSE(app, argc, argv);
  if (given.lists) {
    for (const Question& question : all_questions()) {
      std::cout << question.name << "  " << question.what << '\n';
    }
    return 0;
  }
  for (const std::string& name : given.questions) {
    const auto& questions = all_questions();
    const bool is_known = std::any_of(questions.begin(), questions.end(),
                                      [&](const Question& known) { return known.goes_by(name); });
    if (!is_known) {
      std::cerr << "there is no question " << name << "; --list tells which there are\n";
      return 2;
    }
  }
  allow_descriptors();
  std::ofstream file;  // opened before it all: a run may take long
  if (given.output != "-") file.open(given.output);
  std::ostream& out = given.output == "-" ? std::cout : file;
  if (!out) throw std::runtime_error(given.output + " cannot be written");
  const TemporaryFolder folder;
  given.programs.folder = folder.path();
  const Json report = measure(given);
  out << report.dump(1) << std::endl;
  if (!out) throw std::runtime_error(given.output + " could not be written");
  return report["not_measured"].empty() ? 0 : 1;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  try {
    return muster::bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
