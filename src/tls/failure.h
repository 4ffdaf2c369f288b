// Errors of OpenSSL as numbers of this library and as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/detail/namespaces.h>
#include <tambour/tls/context.h>
#include <tambour/tls/error.h>

#include "tls/openssl.h"

namespace tambour::tls::detail {

template <class T = void>
using Loaded = Result<T, tls::Failure>;

[[nodiscard]] std::unexpected<tls::Failure> failure(Error error, std::string message);

/// Returns the first error of OpenSSL's queue of this thread, or `otherwise`, as the outcome of a
/// transfer. Does not change the queue.
[[nodiscard]] std::int32_t outcome_of_queue(tls::ErrorCode otherwise) noexcept;
/// Returns the text of that error and clears the queue. Throws std::bad_alloc.
[[nodiscard]] std::string take_queue_text();
/// `error` is an X509_V_ERR_ value.
[[nodiscard]] tls::ErrorCode verification_error(long error) noexcept;

/// Returns `error`, or ENOMEM if the first error of the queue is that, with `message` and the text
/// of the queue, which is cleared.
[[nodiscard]] std::unexpected<tls::Failure> queue_failure(tls::ErrorCode error,
                                                          std::string_view message);

/// Text that a peer has sent, for messages: bytes other than printable ASCII become "\x0a". They
/// could forge lines of a log, and control terminals.
[[nodiscard]] std::string printable(std::string_view text);
/// The name in the format of RFC 2253. Throws std::bad_alloc.
[[nodiscard]] std::string text_of(const X509_NAME* name);
/// "certificate CN=example.org, issued by CN=Example CA". Throws std::bad_alloc.
[[nodiscard]] std::string describe(const X509* certificate);
/// "2026-01-31 12:00:00 UTC". Throws std::bad_alloc.
[[nodiscard]] std::string time_text(const ASN1_TIME* time);
/// Throws std::bad_alloc.
[[nodiscard]] tls::Certificate decode(const X509* certificate);
/// The DNS names of the certificate in lower case; without any, its common name. Throws
/// std::bad_alloc.
[[nodiscard]] std::vector<std::string> dns_names_of(const X509* certificate);

}  // namespace tambour::tls::detail
