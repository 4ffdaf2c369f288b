// The error category of DNS.
#include <tambour/dns/error.h>

#include "base/error_table.h"

namespace tambour::dns {

namespace {

constexpr detail::base::ErrorText<ErrorCode> texts[] = {
    {ErrorCode::format_error, "The DNS server did not understand the question (FORMERR)"},
    {ErrorCode::server_failure, "The DNS server failed (SERVFAIL)"},
    {ErrorCode::no_such_name, "The domain name does not exist (NXDOMAIN)"},
    {ErrorCode::not_implemented, "The DNS server does not support this kind of question (NOTIMP)"},
    {ErrorCode::refused, "The DNS server refused the question (REFUSED)"},
    {ErrorCode::bad_response, "The DNS server answered with an unexpected response code"},
    {ErrorCode::no_data, "The domain name has no records of this type"},
    {ErrorCode::timeout, "No DNS server answered in time"},
    {ErrorCode::non_ascii_name,
     "The host name has bytes outside ASCII; convert it to its A-label (xn--...)"},
    {ErrorCode::too_many_lookups, "Too many lookups are waiting for the resolver"},
    {ErrorCode::insecure_server,
     "TLS with the DNS server failed, the server did not prove its identity, or ALPN has chosen "
     "another protocol than \"dot\""},
    {ErrorCode::no_service, "The domain declares that it does not offer this service"},
    {ErrorCode::bad_name, "Not a domain name: it has an empty label or a bad escape"},
    {ErrorCode::name_too_long, "The domain name exceeds 255 bytes, or a label of it 63 bytes"},
    {ErrorCode::bad_message, "The DNS message is malformed"},
    {ErrorCode::bad_pointer,
     "A compressed name of the DNS message does not refer to an earlier name"},
    {ErrorCode::bad_record, "The data of a DNS record is malformed for its type"},
    {ErrorCode::bad_edns, "The DNS message needs one OPT record in its additional section"},
    {ErrorCode::message_too_long, "The DNS message exceeds the bytes that it may have"},
};

}  // namespace

const std::error_category& error_category() noexcept {
  static constinit const detail::base::ErrorTable category("tambour.dns", "Unknown DNS error",
                                                           texts);
  return category;
}

}  // namespace tambour::dns
