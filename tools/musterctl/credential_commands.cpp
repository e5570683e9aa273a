#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "auth/credentials.h"
#include "auth/derivation.h"
#include "auth/key_ids.h"
#include "auth/wipe.h"
#include "base/random.h"
#include "base/secret/secret_file.h"
#include "base/secret/unshown.h"
#include "base/text.h"
#include "commands.h"
#include "muster/inspect.h"
#include "net/tls/library.h"
#include "server/http/library.h"
#include "server/http/tokens.h"
#include "support/quotes.h"

// Who one is, and what needs no server: making a key, and looking at a file of those who are known.

namespace musterctl {
namespace {

namespace auth = muster::auth;
namespace base = muster::base;
namespace http = muster::server::http;
using muster::Result;

struct KeygenArguments {
  std::string id = "job";
  std::string namespaces = "*";
  std::string rights = "all";
  bool is_for_http = false;
  std::string right = "read";  ///< for HTTP
};

Answer refused(std::string why) {
  Answer answer;
  answer.document = {{"error", {{"message", why}}}};
  answer.complaint = std::move(why);
  answer.exit_code = exit_refused;
  return answer;
}

std::optional<auth::Key> fresh_key() {
  unsigned char bytes[auth::Key::bytes_min];
  if (!base::fill_random(bytes, sizeof bytes)) return std::nullopt;
  auto key = auth::Key::of({reinterpret_cast<const char*>(bytes), sizeof bytes});
  ::explicit_bzero(bytes, sizeof bytes);
  if (!key) return std::nullopt;
  return *std::move(key);
}

/// Before a word is written to it: a shell has made the file, in most places readable by everybody.
///
/// returns  what the user should know; empty: nothing
std::string close_to_others(int output) {
  constexpr mode_t others = S_IWGRP | S_IRWXO;
  struct stat status {};
  if (::fstat(output, &status) != 0 || !S_ISREG(status.st_mode)) return {};
  if ((status.st_mode & others) == 0) return {};
  const mode_t kept = status.st_size == 0 ? S_IRWXU : ~others;  // a new file is the owner's alone
  const mode_t closed = status.st_mode & kept & 07777;
  if (::fchmod(output, closed) == 0) {
    return "others could read or change the file of the standard output; that is over";
  }
  return "others can read or change the file of the standard output: make another key, in a file "
         "of mode 0600";
}

Answer run_keygen(const KeygenArguments& arguments, const Common&) {
  const auto key = fresh_key();
  if (!key) return refused(std::string(base::no_random));
  std::string secret = key->base64();
  const std::string may = " " + arguments.namespaces + " " + arguments.rights;
  Answer answer;
  answer.complaint = close_to_others(STDOUT_FILENO);
  answer.document = {{"identity", arguments.id},
                     {"key", secret},
                     {"namespaces", arguments.namespaces},
                     {"rights", arguments.rights}};
  answer.text = "# " + arguments.id +
                ": whoever has this key is taken for it. The same line is for the server and for "
                "the client.\n" +
                arguments.id + " " + secret + may + "\n";
  auth::wipe(secret);
  return answer;
}

/// The server has no more of it than its digest.
Answer run_keygen_for_http(const KeygenArguments& arguments, const Common&) {
  if (!http::is_token_name(arguments.id))
    return refused(tools::in_quotes(arguments.id) +
                   " is no name of a token (letters, digits, \"_\", \".\" and \"-\", at most 64)");
  std::array<unsigned char, http::token_random_bytes> random;
  if (!base::fill_random(random.data(), random.size()))
    return refused(std::string(base::no_random));
  std::string token = http::token_of(random);
  ::explicit_bzero(random.data(), random.size());
  const auto digest = http::digest_of(token);
  if (!digest) return refused(digest.error().detail);
  const std::string line =
      line_of(http::TokenHolder{arguments.id, *http::read_right(arguments.right), *digest});
  Answer answer;
  answer.complaint = close_to_others(STDOUT_FILENO);
  answer.document = {
      {"name", arguments.id}, {"token", token}, {"right", arguments.right}, {"line", line}};
  answer.text = token + "\n" + line + "\n";
  auth::wipe(token);
  return answer;
}

/// A check of CLI11 by what reads the field in a file.
template <class Reads>
CLI::Validator field(Reads reads, const std::string& what) {
  return CLI::Validator(
      [reads, what](const std::string& text) {
        const bool is_one = reads(text) && !base::looks_secret(text);
        return is_one ? "" : tools::in_quotes(text) + " is no " + what;
      },
      "");
}

void add_keygen(CLI::App& app, Chosen& chosen) {
  auto arguments = std::make_shared<KeygenArguments>();
  auto* keygen = app.add_subcommand(
      "keygen", "Prints a line with a fresh key, for the server's file and the client's.");
  keygen->footer(
      footer_with("  musterctl keygen > key && musterd --credentials key\n"
                  "  musterctl keygen team/trainer --namespaces \"train-*\" >> credentials\n"
                  "  musterctl keygen --http prometheus\n"));
  keygen->add_option("ID", arguments->id, "who has the key: \"TENANT/NAME\", or \"NAME\"")
      ->check(field([](const std::string& text) { return auth::read_identity(text).has_value(); },
                    "identity (letters, digits, \"_\", \".\" and \"-\", with one \"/\" at most)"))
      ->capture_default_str();
  auto* for_http = keygen->add_flag("--http", arguments->is_for_http,
                                    "prints a token for musterd --http and, below it, the line for "
                                    "the file of its --http-tokens");
  keygen->add_option("--right", arguments->right, "of the token: read, or admin")
      ->check(field([](const std::string& text) { return http::read_right(text).has_value(); },
                    "right of HTTP: read or admin"))
      ->needs(for_http)
      ->capture_default_str();
  keygen
      ->add_option("--namespaces", arguments->namespaces,
                   "those that it may use, by commas: names, \"BEGINNING*\", \"*\" for all")
      ->check(field(
          [](const std::string& text) { return auth::NamespacePatterns::read(text).has_value(); },
          "list of namespaces"))
      ->type_name("PATTERNS")
      ->excludes(for_http)
      ->capture_default_str();
  keygen
      ->add_option("--rights", arguments->rights,
                   "by commas: read, write, join, observe, supervise, all (these five), admin, "
                   "peer")
      ->check(field([](const std::string& text) { return auth::read_rights(text).has_value(); },
                    "list of rights"))
      ->type_name("RIGHTS")
      ->excludes(for_http)
      ->capture_default_str();
  keygen->callback([=, &chosen] {
    chosen.local = [=](const Common& common) {
      return arguments->is_for_http ? run_keygen_for_http(*arguments, common)
                                    : run_keygen(*arguments, common);
    };
  });
}

std::string text_of_proof(const auth::Proof& proof) {
  if (std::holds_alternative<auth::Key>(proof)) return "key";
  if (const auto* const user = std::get_if<auth::UnixUser>(&proof)) {
    const bool is_user = user->kind == auth::UnixUser::Kind::user;
    return (is_user ? "unix:uid=" : "unix:gid=") + std::to_string(user->number);
  }
  const std::string pattern = to_string(std::get<auth::CertificatePattern>(proof));
  return "certificate:" + base::shown_unless_secret(pattern);
}

/// As the server's log and `sessions` name a key. Empty: it is no key, or TLS is not there.
std::string key_id_of(const auth::Proof& proof, const std::string& server_name) {
  const auto* const key = std::get_if<auth::Key>(&proof);
  if (key == nullptr) return {};
  const auto derived = muster::net::tls::derive(key->bytes(), auth::info_of_id(server_name));
  if (!derived) return {};
  auth::KeyId id;
  std::copy_n(derived->data(), id.bytes.size(), id.bytes.begin());
  return base::hex_digits(id.number());
}

Answer answer_of(const auth::Credentials& credentials, const std::string& server_name) {
  Answer answer;
  answer.document = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const auth::Credential& each : credentials.all()) {
    const auth::Grant& grant = each.grant;
    const std::string not_after = grant.not_after ? to_string(*grant.not_after) : "-";
    const std::string key_id = key_id_of(each.proof, server_name);
    rows.push_back({std::to_string(each.line), to_string(grant.identity),
                    text_of_proof(each.proof) + (key_id.empty() ? "" : " " + key_id),
                    to_string(grant.namespaces), to_string(grant.rights), not_after});
    answer.document.push_back({{"line", each.line},
                               {"identity", to_string(grant.identity)},
                               {"tenant", grant.identity.tenant},
                               {"proof", text_of_proof(each.proof)},
                               {"key_id", key_id.empty() ? Json() : Json(key_id)},
                               {"namespaces", to_string(grant.namespaces)},
                               {"rights", to_string(grant.rights)},
                               {"not_after", grant.not_after ? Json(not_after) : Json()}});
  }
  answer.text = table_of({"LINE", "IDENTITY", "PROOF", "NAMESPACES", "RIGHTS", "NOT AFTER"}, rows);
  return answer;
}

/// All of them, in the order of lines.
Answer answer_of(std::vector<auth::Problem> problems) {
  std::stable_sort(problems.begin(), problems.end(),
                   [](const auto& a, const auto& b) { return a.line < b.line; });
  Answer answer;
  Json lines = Json::array();
  for (const auth::Problem& problem : problems) {
    const std::string text = to_string(problem);
    lines.push_back({{"line", problem.line}, {"message", text}});
    answer.complaint += (answer.complaint.empty() ? "" : "\nmusterctl: ") + text;
  }
  answer.document = {{"problems", std::move(lines)}};
  answer.exit_code = exit_refused;
  return answer;
}

Answer run_check(const std::string& path, const std::string& server_name) {
  const auto file = base::read_secret_file(path, auth::credentials_bytes_max);
  if (!file) return refused(file.error().detail);
  const auto small_enough = auth::Credentials::read(file->text());
  if (!small_enough && small_enough.error().code == muster::ErrorCode::too_large) {
    return refused(base::shown_unless_secret(path) + ": " + small_enough.error().detail);
  }
  auto reading = auth::Credentials::read_with_problems(file->text());
  if (!reading.problems.empty()) return answer_of(std::move(reading.problems));
  return answer_of(reading.credentials, server_name);
}

void add_credentials(CLI::App& app, Chosen& chosen) {
  auto path = std::make_shared<std::string>();
  auto* credentials =
      app.add_subcommand("credentials", "Looks at a file of those who may use a server.");
  credentials->footer(footer_with("  musterctl credentials check /etc/muster/credentials\n"));
  credentials->require_subcommand(1);
  credentials->fallthrough();
  auto* check = credentials->add_subcommand(
      "check", "Lists who is known and what he may, without keys, or all that is wrong.");
  check->add_option("FILE", *path, "as `musterd --credentials` takes it")->required();
  check->callback([=, &chosen] {
    chosen.local = [=](const Common& common) { return run_check(*path, common.server_name); };
  });
}

/// What a store does with an address and a credential: nothing falls back.
std::string connection_of(const Common& common) {
  if (common.server.rfind("unix:", 0) == 0) return "unix";
  const auto is_set = [](const char* variable) {
    const char* const text = std::getenv(variable);
    return text != nullptr && *text != '\0';
  };
  const bool has_any = !common.credential_file.empty() || !common.certificate_file.empty() ||
                       is_set("MUSTER_CREDENTIAL_FILE") || is_set("MUSTER_CREDENTIAL") ||
                       is_set("MUSTER_CERTIFICATE_FILE");
  return has_any ? "tls" : "plain";
}

Result<Answer> run_whoami(Run& run) {
  const auto self = muster::whoami(run.store, run.left());
  if (!self) return self.error();
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  const bool is_known = !self->identity.empty();
  const std::string connection = connection_of(run.common);
  Answer answer;
  answer.document = json_of(*self);
  answer.document["connection"] = connection;
  answer.document["server_name"] = or_null(run.common.server_name);
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, value] : answer.document.items()) {
    if (!value.is_null()) rows.push_back({name, printable(value.get<std::string>())});
  }
  if (!is_known) answer.text = "The server asks nobody who he is.\n";
  answer.text += table_of({"WHAT", "IS"}, rows);
  return answer;
}

void add_whoami(CLI::App& app, Chosen& chosen) {
  auto* whoami = app.add_subcommand("whoami", "Tells whom the server takes the caller for.");
  whoami->footer(footer_with("  musterctl --credential-file key whoami\n"));
  whoami->callback([&chosen] { chosen = {run_whoami, Kind::reads}; });
}

}  // namespace

void add_credential_commands(CLI::App& app, Chosen& chosen) {
  add_whoami(app, chosen);
  add_keygen(app, chosen);
  add_credentials(app, chosen);
}

}  // namespace musterctl
