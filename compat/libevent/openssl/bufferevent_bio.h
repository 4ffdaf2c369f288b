// The BIOs through which OpenSSL reads and writes for a bufferevent.
#pragma once

#include <openssl/ssl.h>

struct bufferevent;

namespace tambour::libevent {

/// Makes OpenSSL read from the input of a bufferevent and write to its output, up to its high-water
/// mark for writing. Returns a reference, or null if there is no memory.
BIO* use_bufferevent(SSL* ssl, bufferevent* below) noexcept;
/// Releases the reference. OpenSSL may still use the BIO: from now on, reads and writes fail.
void release_bufferevent(BIO* bio) noexcept;

/// Makes OpenSSL read from and write to a socket, which it does not close. Unlike with the socket
/// BIO of OpenSSL, writing to a peer that is gone raises no SIGPIPE. Returns false if there is no
/// memory.
bool use_socket(SSL* ssl, int fd) noexcept;
/// The descriptor that OpenSSL writes to, or -1.
int socket_of(SSL* ssl) noexcept;
/// Whether OpenSSL uses a plain socket BIO of the caller, which use_socket() can replace.
bool uses_plain_socket(SSL* ssl) noexcept;

}  // namespace tambour::libevent
