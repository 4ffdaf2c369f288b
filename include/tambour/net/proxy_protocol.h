// The PROXY protocol, versions 1 and 2: a header at the start of a stream in which a proxy
// describes the connection that it forwards. Specified by HAProxy in doc/proxy-protocol.txt.
//
// A server either requires the header or does not expect one (ListenOptions::proxy_protocol);
// detecting it would be unreliable. If it is required, any client that can connect can claim any
// source address, so only trusted proxies must be able to reach the server.
#pragma once

#include <cstddef>
#include <optional>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/net/proxy_header.h>  // IWYU pragma: export
#include <tambour/net/socket_stream.h>
#include <tambour/net/stream.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

/// The maximum size of a version 2 header, in bytes. A version 1 header has at most 107 bytes.
inline constexpr std::size_t proxy_header_bytes_max = 65551;

/// Removes a header from the front of `from` and returns it; nullopt if the header is incomplete.
/// Fails with EPROTO if the bytes are not a header, and with EMSGSIZE if a version 2 header is
/// longer than `bytes_max`, both as soon as that is known. Fails with EBADMSG if the header is
/// inconsistent or its checksum is wrong. After an error `from` is unchanged. Throws
/// std::bad_alloc.
[[nodiscard]] Result<std::optional<ProxyHeader>> take_proxy_header(
    Buffer& from, std::size_t bytes_max = proxy_header_bytes_max);

/// Appends a header, for proxies and for clients of servers that require one. Fails with EINVAL if
/// the version cannot represent `header`: version 1 supports only TCP over IPv4 and IPv6, and
/// unknown; neither version supports address zones. Fails with EMSGSIZE if the fields are too long.
/// After an error `to` is unchanged. Throws std::bad_alloc.
[[nodiscard]] Result<> append_proxy_header(Buffer& to, const ProxyHeader& header);

/// Describes the connection of a client for the server to which a proxy forwards it: the endpoints,
/// and if the client uses TLS, its application protocol, the name that it has requested, and a
/// ProxyTls with the version ("TLSv1.3"), the IANA name of the cipher and the common name of the
/// client's certificate. Fails with the error of the socket if the client is gone. Throws
/// std::bad_alloc.
[[nodiscard]] Result<ProxyHeader> describe_client(const SocketStream& client);

/// Waits for a header. Bytes received after it stay in `buffer`. Fails with the errors of
/// take_proxy_header() and of the stream, with StreamError::eof if the stream ends before the first
/// byte, and with StreamError::truncated if it ends within the header. For a time limit:
/// timeout(5s, read_proxy_header(stream, buffer)).
[[nodiscard]] Task<Result<ProxyHeader>> read_proxy_header(
    Stream& stream, Buffer& buffer, std::size_t bytes_max = proxy_header_bytes_max);

/// Waits for a header and reads only its bytes from the stream, so that no buffer is needed. Fails
/// with the same errors as the function above.
[[nodiscard]] Task<Result<ProxyHeader>> read_proxy_header(
    SocketStream& stream, std::size_t bytes_max = proxy_header_bytes_max);

}  // namespace tambour

#pragma GCC visibility pop
