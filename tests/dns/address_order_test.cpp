// The order in which the addresses of a name are tried.
#include "dns/addresses/address_order.h"

#include <optional>
#include <string_view>

#include <gtest/gtest.h>

#include <tambour/net/ip_address.h>

namespace tambour::address_order_test {
namespace {

IpAddress address(std::string_view text) { return IpAddress::parse(text).value(); }

struct Preference {
  const char* preferred;
  const char* source;  ///< Empty: cannot be reached.
  const char* other;
  const char* source_of_other;
};

dns::detail::Destination destination(std::string_view to, std::string_view from) {
  return {.to = address(to), .from = from.empty() ? std::nullopt : std::optional(address(from))};
}

TEST(AddressOrder, follows_rfc_6724) {
  // Among them the examples of section 10.2.
  for (const Preference& preference : {
           Preference{"198.51.100.121", "198.51.100.117", "2001:db8:1::1", "fe80::1"},
           Preference{"2001:db8:1::1", "2001:db8:1::2", "198.51.100.121", "169.254.13.78"},
           Preference{"2001:db8:1::1", "2001:db8:1::2", "10.1.2.3", "10.1.2.4"},
           Preference{"fe80::1", "fe80::2", "2001:db8:1::1", "2001:db8:1::2"},
           Preference{"2001:db8:1::1", "2001:db8:1::2", "2002:c633:6401::1", "2002:c633:6401::2"},
           Preference{"2002:c633:6401::1", "2002:c633:6401::2", "2001:db8:1::1",
                      "2002:c633:6401::2"},
           Preference{"2001:db8:1::1", "2001:db8:1::2", "2001:db8:3ffe::1", "2001:db8:3f44::2"},
           Preference{"192.0.2.1", "192.0.2.2", "2001:db8::1", ""},
           Preference{"::1", "::1", "127.0.0.1", "127.0.0.1"},
           Preference{"10.0.0.1", "10.0.0.2", "fd00::1", "fd00::2"},
       }) {
    const auto a = destination(preference.preferred, preference.source);
    const auto b = destination(preference.other, preference.source_of_other);
    EXPECT_TRUE(dns::detail::is_preferred(a, b)) << preference.preferred << ' ' << preference.other;
    EXPECT_FALSE(dns::detail::is_preferred(b, a))
        << preference.preferred << ' ' << preference.other;
  }
  const auto one = destination("192.0.2.1", "192.0.2.100");
  const auto two = destination("198.51.100.1", "192.0.2.100");
  EXPECT_FALSE(dns::detail::is_preferred(one, two) || dns::detail::is_preferred(two, one))
      << "the order of IPv4 addresses is that of the server";
}

}  // namespace
}  // namespace tambour::address_order_test
