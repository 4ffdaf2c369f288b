// The keys of session tickets, for layer handoff.
#pragma once

#include <string>

#include <tambour/detail/namespaces.h>
#include <tambour/tls/context.h>

namespace tambour::tls::detail {

/// The keys with which `context` encrypts and decrypts tickets, for
/// tls::ServerOptions::inherited_ticket_keys of another process. Secret: the caller must erase it.
/// Empty if the context is empty or has a ticket_secret. Throws std::bad_alloc.
[[nodiscard]] std::string save_ticket_keys(const tls::ServerContext& context);

}  // namespace tambour::tls::detail
