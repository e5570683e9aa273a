// musterctl: reads and writes the keys of a running server, and asks it how it is.

#include <iostream>

#include "commands.h"

namespace {

constexpr const char* footer = R"(Exit codes:
  0  done
  1  the server refused, or the outcome is unknown
  2  wrong usage
  3  no such key, or it did not come in time
  4  no Muster server answers at the address)";

int run(const musterctl::Command& command, const musterctl::Common& common) {
  muster::StoreOptions options;
  options.name_space = common.name_space;
  options.label = "musterctl";
  options.timeout = common.timeout();
  auto store = muster::Store::connect(common.server, std::move(options), common.timeout());
  if (!store) return musterctl::report(store.error());
  return command(*store, common);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Reads and writes the keys of a Muster server, and tells who waits for whom.",
               "musterctl");
  app.footer(footer);
  app.require_subcommand(1);
  app.fallthrough();

  musterctl::Common common;
  app.add_option("-s,--server", common.server, "\"host:port\", \"[ipv6]:port\" or \"unix:/path\"")
      ->envname("MUSTER_SERVER")
      ->capture_default_str();
  app.add_option("-n,--namespace", common.name_space, "the namespace of the keys")
      ->envname("MUSTER_NAMESPACE");
  app.add_option("-t,--timeout", common.timeout_s, "of everything together, in seconds")
      ->check(musterctl::seconds_above_zero())
      ->capture_default_str();
  app.add_flag("--json", common.json, "print JSON instead of text");

  musterctl::Command chosen;
  musterctl::add_key_commands(app, chosen);
  musterctl::add_inspect_commands(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? musterctl::exit_ok : musterctl::exit_usage;
  }
  return run(chosen, common);
}
