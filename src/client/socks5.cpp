// The handshake of SOCKS 5: methods, user name and password, and the request to connect.
#include "client/socks5.h"

#include <netinet/in.h>

#include <cstddef>
#include <utility>

#include <tambour/bytes/buffer.h>
#include <tambour/net/ip_address.h>
#include <tambour/net/proxy.h>

#include "client/proxy.h"

namespace tambour::detail::client {
namespace {

// RFC 1928, sections 3 to 6; RFC 1929, section 2.
constexpr std::uint8_t socks_version = 5;
constexpr std::uint8_t without_authentication = 0;
constexpr std::uint8_t with_password = 2;
constexpr std::uint8_t no_acceptable_method = 0xff;
constexpr std::uint8_t password_version = 1;
constexpr std::uint8_t command_connect = 1;
constexpr std::uint8_t type_ipv4 = 1;
constexpr std::uint8_t type_name = 3;
constexpr std::uint8_t type_ipv6 = 4;
constexpr std::uint8_t reply_last = 8;

Task<Result<Buffer>> read_bytes(SocketStream& stream, std::size_t count) {
  Buffer bytes;
  while (bytes.size() < count) {
    const auto got = co_await stream.read(bytes, count - bytes.size());
    if (!got) co_return std::unexpected(got.error());
    if (*got == 0) co_return failure(ProxyError::bad_answer);
  }
  co_return bytes;
}

std::uint8_t byte_of(const Buffer& bytes, std::size_t index) noexcept {
  return std::to_integer<std::uint8_t>(bytes[index]);
}

void append_text(Buffer& to, std::string_view text) {
  to.append_be<std::uint8_t>(static_cast<std::uint8_t>(text.size()));
  to.append(text);
}

Task<Result<>> authenticate(SocketStream& stream, const http::BasicCredentials& credentials) {
  Buffer output;
  output.append_be<std::uint8_t>(password_version);
  append_text(output, credentials.user);
  append_text(output, credentials.password);
  auto sent = co_await stream.write(output);
  if (!sent) co_return sent;
  const auto answer = co_await read_bytes(stream, 2);
  if (!answer) co_return std::unexpected(answer.error());
  if (byte_of(*answer, 0) != password_version) co_return failure(ProxyError::bad_answer);
  if (byte_of(*answer, 1) != 0) co_return failure(ProxyError::authentication_required);
  co_return {};
}

Task<Result<>> choose_method(SocketStream& stream,
                             const std::optional<http::BasicCredentials>& credentials) {
  Buffer output;
  output.append_be<std::uint8_t>(socks_version);
  output.append_be<std::uint8_t>(credentials ? 2 : 1);
  output.append_be<std::uint8_t>(without_authentication);
  if (credentials) output.append_be<std::uint8_t>(with_password);
  auto sent = co_await stream.write(output);
  if (!sent) co_return sent;
  const auto answer = co_await read_bytes(stream, 2);
  if (!answer) co_return std::unexpected(answer.error());
  const std::uint8_t method = byte_of(*answer, 1);
  if (byte_of(*answer, 0) != socks_version) co_return failure(ProxyError::bad_answer);
  if (method == no_acceptable_method) co_return failure(ProxyError::authentication_required);
  if (method == without_authentication) co_return {};
  if (method != with_password || !credentials) co_return failure(ProxyError::bad_answer);
  co_return co_await authenticate(stream, *credentials);
}

void append_address(Buffer& to, const std::string& host) {
  const auto address = IpAddress::parse(host);
  // A zone has no meaning for the proxy's machine.
  if (!address || address->zone() != 0) {
    to.append_be<std::uint8_t>(type_name);
    append_text(to, host);
    return;
  }
  to.append_be<std::uint8_t>(address->is_v4() ? type_ipv4 : type_ipv6);
  to.append(std::as_bytes(address->bytes()));
}

/// Reads the rest of the reply: an address that has no meaning for the client.
Task<Result<>> read_reply(SocketStream& stream) {
  // The first byte of the address is the length of a name.
  const auto head = co_await read_bytes(stream, 5);
  if (!head) co_return std::unexpected(head.error());
  if (byte_of(*head, 0) != socks_version) co_return failure(ProxyError::bad_answer);
  const std::uint8_t reply = byte_of(*head, 1);
  if (reply > reply_last) co_return failure(ProxyError::socks_failure);
  if (reply != 0) {
    const auto first = static_cast<int>(ProxyError::socks_failure);
    co_return failure(static_cast<ProxyError>(first + reply - 1));
  }
  std::size_t rest = sizeof(std::uint16_t);
  switch (byte_of(*head, 3)) {
    case type_ipv4:
      rest += sizeof(in_addr) - 1;
      break;
    case type_ipv6:
      rest += sizeof(in6_addr) - 1;
      break;
    case type_name:
      rest += byte_of(*head, 4);
      break;
    default:
      co_return failure(ProxyError::bad_answer);
  }
  const auto address = co_await read_bytes(stream, rest);
  if (!address) co_return std::unexpected(address.error());
  co_return {};
}

}  // namespace

Task<Result<>> open_socks5(SocketStream& stream, std::optional<http::BasicCredentials> credentials,
                           std::string host, std::uint16_t port) {
  if (host.size() > 255) co_return failure(ProxyError::bad_host);
  const auto chosen = co_await choose_method(stream, credentials);
  if (!chosen) co_return chosen;
  Buffer output;
  output.append_be<std::uint8_t>(socks_version);
  output.append_be<std::uint8_t>(command_connect);
  output.append_be<std::uint8_t>(0);
  append_address(output, host);
  output.append_be<std::uint16_t>(port);
  auto sent = co_await stream.write(output);
  if (!sent) co_return sent;
  co_return co_await read_reply(stream);
}

}  // namespace tambour::detail::client
