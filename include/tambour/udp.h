// UDP sockets and datagrams.
// Includes all headers of <tambour/udp/>.
#pragma once

#include <tambour/udp/datagrams.h>  // IWYU pragma: export
#include <tambour/udp/socket.h>     // IWYU pragma: export
