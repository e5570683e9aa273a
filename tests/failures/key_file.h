#pragma once

#include <string>

namespace muster::test {

/// With MUSTER_TEST_TLS in the environment the server and the ranks have a key, and speak TLS.
bool is_tls();

/// The file of that key, which the library finds by MUSTER_CREDENTIAL_FILE; empty: there is none.
/// To be asked for before anything is started.
const std::string& key_file();

}  // namespace muster::test
