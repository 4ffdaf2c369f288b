// The error category of DNS.
#include <tambour/dns_error.h>

namespace tambour {
namespace {

class DnsCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "dns"; }
  [[nodiscard]] std::string message(int value) const override { return text(DnsError(value)); }

 private:
  static const char* text(DnsError error) noexcept {
    switch (error) {
      case DnsError::format_error:
        return "The DNS server did not understand the question (FORMERR)";
      case DnsError::server_failure:
        return "The DNS server failed (SERVFAIL)";
      case DnsError::no_such_name:
        return "The domain name does not exist (NXDOMAIN)";
      case DnsError::not_implemented:
        return "The DNS server does not support this kind of question (NOTIMP)";
      case DnsError::refused:
        return "The DNS server refused the question (REFUSED)";
      case DnsError::bad_response:
        return "The DNS server answered with an unexpected response code";
      case DnsError::no_data:
        return "The domain name has no records of this type";
      case DnsError::timeout:
        return "No DNS server answered in time";
      case DnsError::non_ascii_name:
        return "The host name has bytes outside ASCII; convert it to its A-label (xn--...)";
      case DnsError::too_many_lookups:
        return "Too many lookups are waiting for the resolver";
      case DnsError::insecure_server:
        return "TLS with the DNS server failed, the server did not prove its identity, or ALPN has "
               "chosen another protocol than \"dot\"";
      case DnsError::no_service:
        return "The domain declares that it does not offer this service";
      default:
        return text_of_message(error);
    }
  }
  static const char* text_of_message(DnsError error) noexcept {
    switch (error) {
      case DnsError::bad_name:
        return "Not a domain name: it has an empty label or a bad escape";
      case DnsError::name_too_long:
        return "The domain name exceeds 255 bytes, or a label of it 63 bytes";
      case DnsError::bad_message:
        return "The DNS message is malformed";
      case DnsError::bad_pointer:
        return "A compressed name of the DNS message does not refer to an earlier name";
      case DnsError::bad_record:
        return "The data of a DNS record is malformed for its type";
      case DnsError::bad_edns:
        return "The DNS message needs one OPT record in its additional section";
      case DnsError::message_too_long:
        return "The DNS message exceeds the bytes that it may have";
      default:
        return "Unknown DNS error";
    }
  }
};

}  // namespace

const std::error_category& dns_category() noexcept {
  static const DnsCategory category;
  return category;
}

}  // namespace tambour
