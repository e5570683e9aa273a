#include "questions.h"

namespace muster::bench {

const std::vector<Question>& all_questions() {
  static const std::vector<Question> questions = {
      {"operations", "set, get and add: connections, depth of the pipeline, size of the value",
       measure_operations},
      {"large_values", "set and get of 1, 16 and 64 MiB", measure_large_values},
      {"round_trips", "one client, one request at a time: raw, and by the library's two forms",
       measure_round_trips},
      {"callers", "many threads that share a store", measure_callers},
      {"multi_get", "64 keys at once", measure_multi_get},
      {"wake_ups", "until the last of many waiters is awake", measure_wake_ups},
      {"connect_storm", "many clients that come at the same moment", measure_connect_storm},
      {"groups",
       "to start and join, barrier, broadcast, all_gather and heartbeats, by simulated ranks",
       measure_groups},
      {"stateless_groups", "vLLM's barrier and all_gather on TCPStore, beside Muster's",
       measure_stateless_groups},
      {"memory", "of a key, and of an idle connection", measure_memory},
      {"expiry", "how late keys go that expire, and what others notice", measure_expiry},
      {"fairness", "what others notice of floods of small requests, and of large values",
       measure_fairness},
      {"encryption", "what TLS costs: operations, a barrier, to begin, memory", measure_encryption,
       "encryption"},
      {"encrypted_strangers", "what members notice of strangers who begin TLS again and again",
       measure_strangers, "encryption"},
      {"encrypted_reconnect", "until all are back whose connections were cut at once",
       measure_reconnect, "encryption"},
      {"tcpstore", "the port for programs that use TCPStore, beside TCPStore's own servers",
       measure_tcpstore, "tcpstore"},
  };
  return questions;
}

std::string name_of(Cores cores) { return cores == Cores::one ? "1cpu" : "2cpu"; }

void place_client(Cores cores) { pin_to(cores == Cores::one ? server_core() : client_core()); }

}  // namespace muster::bench
