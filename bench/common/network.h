// TCP sockets on the loopback device.
#pragma once

#include <netinet/in.h>

#include <cstdint>

namespace bench {

sockaddr_in loopback(std::uint16_t port);

/// Returns a port that is currently free.
std::uint16_t free_port();

/// Opens a blocking TCP connection with TCP_NODELAY to a listening server.
int connect_to(std::uint16_t port);

/// Whether a server listens on 127.0.0.1. It sees a connection that is reset at once.
bool can_connect_to(std::uint16_t port);

/// Like connect_to(), from the address 127.0.0.`host`. After thousands of closed connections, the
/// ports of 127.0.0.1 are in TIME_WAIT; those of other addresses are free.
int connect_from(int host, std::uint16_t port);

/// Sets TCP_NODELAY, for subjects whose library leaves this to its users.
void set_no_delay(int fd);

/// Closes the connection with a reset, so that it does not enter TIME_WAIT.
void close_with_reset(int fd);

}  // namespace bench
