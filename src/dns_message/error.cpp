// The error category of DNS.
#include <tambour/dns_error.h>

#include "base/error_table.h"

namespace tambour {
namespace {

constexpr base::ErrorText<DnsError> texts[] = {
    {DnsError::format_error, "The DNS server did not understand the question (FORMERR)"},
    {DnsError::server_failure, "The DNS server failed (SERVFAIL)"},
    {DnsError::no_such_name, "The domain name does not exist (NXDOMAIN)"},
    {DnsError::not_implemented, "The DNS server does not support this kind of question (NOTIMP)"},
    {DnsError::refused, "The DNS server refused the question (REFUSED)"},
    {DnsError::bad_response, "The DNS server answered with an unexpected response code"},
    {DnsError::no_data, "The domain name has no records of this type"},
    {DnsError::timeout, "No DNS server answered in time"},
    {DnsError::non_ascii_name,
     "The host name has bytes outside ASCII; convert it to its A-label (xn--...)"},
    {DnsError::too_many_lookups, "Too many lookups are waiting for the resolver"},
    {DnsError::insecure_server,
     "TLS with the DNS server failed, the server did not prove its identity, or ALPN has chosen "
     "another protocol than \"dot\""},
    {DnsError::no_service, "The domain declares that it does not offer this service"},
    {DnsError::bad_name, "Not a domain name: it has an empty label or a bad escape"},
    {DnsError::name_too_long, "The domain name exceeds 255 bytes, or a label of it 63 bytes"},
    {DnsError::bad_message, "The DNS message is malformed"},
    {DnsError::bad_pointer,
     "A compressed name of the DNS message does not refer to an earlier name"},
    {DnsError::bad_record, "The data of a DNS record is malformed for its type"},
    {DnsError::bad_edns, "The DNS message needs one OPT record in its additional section"},
    {DnsError::message_too_long, "The DNS message exceeds the bytes that it may have"},
};

}  // namespace

const std::error_category& dns_category() noexcept {
  static constinit const base::ErrorTable category("tambour.dns", "Unknown DNS error", texts);
  return category;
}

}  // namespace tambour
