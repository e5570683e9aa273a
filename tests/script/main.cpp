// Runs scripts, each against the part of Muster that its folder is named after:
//
//     scripts tests/script/core                         a folder
//     scripts tests/script/core --only store_take       one script of it
//     scripts --rewrite FILE...                         writes the actual lines as expected

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "client_runner.h"
#include "core_runner.h"
#include "job_runner.h"
#include "launch_runner.h"
#include "link_runner.h"
#include "runtime_runner.h"
#include "script.h"
#include "server_runner.h"

namespace muster::script {
namespace {

using std::filesystem::path;

template <class SomeRunner>
std::unique_ptr<Runner> make() {
  return std::make_unique<SomeRunner>();
}

const std::map<std::string, std::unique_ptr<Runner> (*)()> runners{
    {"client", make<ClientRunner>}, {"core", make<CoreRunner>}, {"job", make<JobRunner>},
    {"launch", make<LaunchRunner>}, {"link", make<LinkRunner>}, {"runtime", make<RuntimeRunner>},
    {"server", make<ServerRunner>},
};

struct CommandLine {
  std::vector<path> scripts;
  std::string only;
  bool rewrites = false;
};

CommandLine read_command_line(const std::vector<std::string>& words) {
  CommandLine line;
  for (std::size_t index = 0; index < words.size(); ++index) {
    const std::string& word = words[index];
    if (word == "--rewrite") {
      line.rewrites = true;
    } else if (word == "--only") {
      if (++index == words.size()) throw ScriptError("--only needs the name of a script");
      line.only = words[index];
    } else if (std::filesystem::is_directory(word)) {
      for (const auto& entry : std::filesystem::directory_iterator(word)) {
        if (entry.path().extension() == ".txt") line.scripts.push_back(entry.path());
      }
    } else {
      line.scripts.emplace_back(word);
    }
  }
  std::sort(line.scripts.begin(), line.scripts.end());
  if (!line.only.empty()) {
    std::erase_if(line.scripts, [&](const path& script) { return script.stem() != line.only; });
  }
  return line;
}

std::string contents_of(const path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw ScriptError(file.string() + ": cannot be read");
  std::ostringstream contents;
  contents << stream.rdbuf();
  return contents.str();
}

/// Returns the differences, "" if there are none.
std::string run_file(const path& file, bool rewrites) {
  const std::string folder = absolute(file).parent_path().filename();
  const auto runner = runners.find(folder);
  if (runner == runners.end()) {
    throw ScriptError(file.string() + ": no runner is named after the folder '" + folder + "'");
  }
  const Outcome outcome = run(parse(file, contents_of(file)), *runner->second());
  if (rewrites && !outcome.differences.empty()) {
    std::ofstream(file, std::ios::binary) << outcome.rewritten;
  }
  return outcome.differences;
}

int run_files(const CommandLine& line) {
  std::string differences;
  int failed = 0;
  for (const path& script : line.scripts) {
    // The last line before a crash names the script.
    std::printf("%s\n", script.c_str());
    std::fflush(stdout);
    std::string found;
    try {
      found = run_file(script, line.rewrites);
    } catch (const ScriptError& problem) {
      found = std::string(problem.what()) + "\n";
    }
    if (!found.empty()) ++failed;
    differences += found;
  }
  std::printf("%s%zu scripts, %d differ%s\n", differences.c_str(), line.scripts.size(), failed,
              line.rewrites && failed > 0 ? "; rewritten, review the changes" : "");
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace muster::script

int main(int count, char** words) {
  using namespace muster::script;
  try {
    const CommandLine line = read_command_line({words + 1, words + count});
    if (line.scripts.empty()) {
      std::printf("no script%s; usage: %s [--rewrite] [--only NAME] FOLDER|FILE...\n",
                  line.only.empty() ? "" : (" is named " + line.only).c_str(), words[0]);
      return 2;
    }
    return run_files(line);
  } catch (const std::exception& problem) {
    std::printf("%s\n", problem.what());
    return 2;
  }
}
