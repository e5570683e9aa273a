#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/options.h"

namespace musterrun {

/// What was asked for, before it is understood as a whole.
struct Asked {
  muster::launch::LaunchOptions options;
  std::string process_count;  ///< "auto", "gpu", "cpu" or a number; empty: as by default
  bool is_module = false;
  bool is_command = false;
  bool is_run_path = false;
  bool is_standalone = false;
  std::string rendezvous_backend;                      ///< torchrun's; empty: not said
  std::map<std::string, std::string> rendezvous_conf;  ///< torchrun's
  std::optional<muster::launch::Compat> compat;

  void notice(const std::string& where, const std::string& what) {
    options.notices.push_back(where + " " + what);
  }
};

/// An option of the command line, which is also a variable of the environment.
struct Option {
  /// The names without their "--", written with dashes; each may be written with underscores. By
  /// the first one it is called here.
  std::vector<std::string> names;
  std::string letters;              ///< such as "r", for "-r"
  std::string letters_of_composer;  ///< that there are not with --compat torchrun
  std::string form;                 ///< of the value, such as "NUMBER"; empty: a switch
  std::string help;
  std::string fallback;  ///< what holds without it, for people

  /// Takes a value; of a switch it is called if that is on.
  ///
  /// where    the option or the variable that says it
  /// returns  what is wrong with the value, behind "where: "; empty: nothing
  std::function<std::string(const std::string& value, const std::string& where, Asked& to)> take;

  const std::string& name() const { return names.front(); }
  bool is_switch() const { return form.empty(); }
  /// "--world-size" and "--world_size", of each name.
  std::vector<std::string> spellings() const;
};

/// All of them, in the order of the help.
const std::vector<Option>& all_options();

// The parts of all_options().

/// What is run, and how many of it.
std::vector<Option> program_options();
/// When a job has ended, and what the launcher does itself.
std::vector<Option> ending_options();
/// Where the ranks of this node are, told by hand.
std::vector<Option> place_options();
/// How the nodes meet.
std::vector<Option> rendezvous_options();
/// What becomes of what ranks print.
std::vector<Option> output_options();
/// torchrun's that mean little or nothing here.
std::vector<Option> torchrun_options();

// How values are taken.

using Take = decltype(Option::take);

/// "\"x\" is no VALID".
std::string no(const std::string& value, const std::string& valid);

/// A member of the options, or of a group of them.
template <auto... Path>
auto& field(muster::launch::LaunchOptions& options) {
  return (options.*....*Path);
}
template <class T>
using Field = T& (*)(muster::launch::LaunchOptions& options);

/// A whole number from `least` on, also into an optional one.
template <class Number>
Take number_into(Field<Number> field, int least);

/// Some text, also into an optional one.
template <class Text>
Take text_into(Field<Text> field);
Take duration_into(Field<muster::Duration> field);
Take switch_into(Field<bool> field);
Take switch_into(bool Asked::*member);

/// A number from `least` to 2147483647; none: it is none.
std::optional<int> int_in(std::string_view text, int least);
/// Of one host: no kernel has more pids. So the ranks of all nodes together are a number, too.
inline constexpr int processes_max = 1 << 22;
std::optional<int> process_count_in(std::string_view text, int least);

}  // namespace musterrun
