// Sockets over the loopback device.
#pragma once

#include <netinet/in.h>

#include <cstdint>

namespace bench {

sockaddr_in loopback(std::uint16_t port);

/// A port that is free now.
std::uint16_t free_port();

/// A blocking TCP connection to a server that listens, TCP_NODELAY set.
int connect_to(std::uint16_t port);

/// The same from 127.0.0.`host`: one that comes after thousands that were closed finds a free port
/// there, where those of 127.0.0.1 wait in TIME_WAIT.
int connect_from(int host, std::uint16_t port);

/// TCP_NODELAY, for the subjects whose library leaves that to its users.
void send_at_once(int fd);

/// Closes, and leaves nothing in TIME_WAIT.
void abandon(int fd);

}  // namespace bench
