// musterctl: reads and writes the keys of a running server, and asks it how it is.

#include <fcntl.h>
#include <unistd.h>

#include <iostream>
#include <sstream>

#include "ask.h"
#include "commands.h"
#include "musterd/settings.h"
#include "support/command_line.h"
#include "support/standard_output.h"
#include "support/units.h"
#include "watch.h"

namespace {

constexpr const char* footer =
    R"(Durations are written as 500ms, 15s, 2min or 1h; a number alone is seconds.
With --json every command prints one document, also when the server refuses: {"error": ...}.
--watch repeats a command that only reads until Ctrl-C, also while the server is away; with --json
each line is {"time": ..., "answer": ...} then. On a terminal arrow and page keys scroll.

Environment:
  MUSTER_SERVER      as --server
  MUSTER_NAMESPACE   as --namespace
  MUSTER_CREDENTIAL_FILE, MUSTER_CERTIFICATE_FILE, MUSTER_CERTIFICATE_KEY_FILE,
  MUSTER_AUTHORITIES_FILE, MUSTER_SERVER_NAME
                     as --credential-file, --certificate-file, --certificate-key-file,
                     --authorities-file and --server-name
  MUSTER_CREDENTIAL  the line of a key itself, where there is no file

Examples:
  musterctl status
  musterctl why                    who waits, and for whom
  musterctl --server trainer-0:29400 --namespace job7 ls --watch=5s

Exit codes:
  0  done; for `why` also if the group hangs, and for a watch that was ended
  1  the server refused, a key is there or has another value, the outcome of a change is unknown,
     or the standard input or output fails
  2  wrong usage
  3  a key, group or namespace is absent, or the wait timed out
  4  no Muster server answers at the address

See also `musterctl COMMAND --help` and musterctl(1).)";

constexpr muster::Duration watch_min = std::chrono::milliseconds(100);

int refuse(const std::string& why) {
  std::cerr << "musterctl: " << why << "\nRun with --help for more information.\n";
  return musterctl::exit_usage;
}

void add_common(CLI::App& app, musterctl::Common& common, std::string& watch) {
  app.add_option("-s,--server", common.server, "\"host:port\", \"[ipv6]:port\" or \"unix:/path\"")
      ->envname("MUSTER_SERVER")
      ->type_name("ADDRESS")
      ->capture_default_str();
  app.add_option("-n,--namespace", common.name_space, "the namespace of keys and groups")
      ->envname("MUSTER_NAMESPACE")
      ->type_name("NAME");
  app.add_option("--credential-file", common.credential_file,
                 "with the key of who asks, for a server that was started with --credentials")
      ->type_name("FILE");
  app.add_option("--certificate-file", common.certificate_file,
                 "in place of a key: a certificate with its chain, PEM")
      ->type_name("FILE");
  app.add_option("--certificate-key-file", common.certificate_key_file,
                 "the key of that certificate, PEM; default: that of --certificate-file")
      ->type_name("FILE");
  app.add_option("--authorities-file", common.authorities_file,
                 "who has signed the server's certificate, PEM; default: whom the system trusts")
      ->type_name("FILE");
  app.add_option("--server-name", common.server_name,
                 "as the server was told: keys are derived for it; with a certificate the name "
                 "that the server's certificate has, by default the host of the address")
      ->envname("MUSTER_SERVER_NAME")
      ->type_name("NAME");
  musterctl::add_duration(app, "-t,--timeout",
                          "of the whole command; with --watch of one repetition",
                          [&common](muster::Duration timeout) { common.timeout = timeout; })
      ->default_str("10s, with --watch 2s");
  musterctl::add_duration(app, "--wait-for-server",
                          "try on for so long while nobody listens at the address",
                          [&common](muster::Duration time) { common.wait_for_server = time; })
      ->default_str("0s");
  app.add_flag("--json", common.json, "print JSON instead of text");
  app.add_flag("--watch", watch, "repeat the command every second, or every --watch=DURATION");
}

int run(const musterctl::Chosen& chosen, musterctl::Common& common, std::string watch) {
  if (watch.empty()) return musterctl::run_once(chosen, common);
  if (watch == "true") watch = "1s";  // the flag alone
  const std::string refusal = musterctl::refusal_of_duration(watch, watch_min);
  if (!refusal.empty()) return refuse("--watch: " + refusal);
  if (chosen.kind != musterctl::Kind::reads) {
    return refuse(
        "--watch is for commands that only read and do not wait: get, exists, multi_get, ls, "
        "status, sessions, groups, waiters, events, why, namespaces, whoami, config get");
  }
  common.watch = tools::parse_duration(watch);
  return musterctl::watch(chosen.command, common);
}

/// Prints the help, or what is wrong with the command line.
int tell(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() != 0) return refuse(tools::complaint_of(app, error));
  std::ostringstream text;
  app.exit(error, text, std::cerr);
  return tools::write_text("musterctl", text.str()) ? musterctl::exit_ok : musterctl::exit_refused;
}

/// A standard stream that was closed would become a file or socket of the library. What stands
/// there instead refuses to be read or written.
void occupy_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    const int file = ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (file >= 0 && file != stream) ::close(file);
  }
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_streams();
  CLI::App app("Reads and writes the keys of a Muster server, and tells who waits for whom.",
               "musterctl");
  app.footer(footer);
  app.set_version_flag("--version", "musterctl " MUSTER_VERSION);
  app.require_subcommand(1);
  app.fallthrough();

  musterctl::Common common;
  std::string watch;
  add_common(app, common, watch);
  musterctl::Chosen chosen;
  musterctl::add_key_commands(app, chosen);
  musterctl::add_store_commands(app, chosen);
  musterctl::add_list_commands(app, chosen);
  musterctl::add_namespace_commands(app, chosen);
  musterctl::add_why_command(app, chosen);
  musterctl::add_credential_commands(app, chosen);
  musterctl::add_operate_commands(app, chosen);
  musterctl::add_copy_commands(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return tell(app, error);
  }
  for (const std::string& variable : musterd::unread_variables()) {
    std::cerr << "musterctl: nothing reads the variable " << variable << '\n';
  }
  return run(chosen, common, watch);
}
