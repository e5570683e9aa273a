#pragma once

#include "net/tls/table.h"

// The functions of the table, see net/tls/table.h.

namespace muster::tls {

net::tls::Context* make_server(const net::tls::ServerContext* options, char* why,
                               std::size_t why_size);
net::tls::Context* make_client(const net::tls::ClientContext* options, char* why,
                               std::size_t why_size);
void free_context(net::tls::Context* context);

net::tls::Session* make_session(net::tls::Context* context);
void free_session(net::tls::Session* session);
net::tls::Read read(net::tls::Session* session, const char* came, std::size_t came_size,
                    char* plain, std::size_t plain_size, net::tls::Sink sink);
int write(net::tls::Session* session, const char* plain, std::size_t size, net::tls::Sink sink);
void end(net::tls::Session* session, net::tls::Sink sink);
std::size_t peer_id(const net::tls::Session* session, unsigned char* id, std::size_t size);
std::size_t peer_names(const net::tls::Session* session, char* names, std::size_t size);

int derive(const unsigned char* key, std::size_t key_size, const char* info, std::size_t info_size,
           unsigned char* secret);

}  // namespace muster::tls
