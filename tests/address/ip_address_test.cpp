// IP addresses and networks: notations, properties, order.
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

namespace tambour::ip_address_test {
namespace {

IpAddress address(std::string_view text) {
  const auto parsed = IpAddress::parse(text);
  EXPECT_TRUE(parsed) << text;
  return parsed.value_or(IpAddress());
}

IpNetwork network(std::string_view text) {
  const auto parsed = IpNetwork::parse(text);
  EXPECT_TRUE(parsed) << text;
  return parsed.value_or(IpNetwork());
}

TEST(IpAddresses, are_formatted_as_rfc_5952_recommends) {
  struct Case {
    const char* text;
    const char* formatted;
  };
  for (const Case& notation :
       {Case{"192.0.2.1", "192.0.2.1"}, Case{"0.0.0.0", "0.0.0.0"},
        Case{"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"}, Case{"2001:0DB8::0001", "2001:db8::1"},
        Case{"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"}, Case{"0:0:0:0:0:0:0:0", "::"},
        Case{"::FFFF:192.0.2.1", "::ffff:192.0.2.1"}, Case{"::ffff:c000:201", "::ffff:192.0.2.1"},
        Case{"fe80::1%4000000", "fe80::1%4000000"}}) {
    EXPECT_EQ(address(notation.text).to_string(), notation.formatted);
    EXPECT_EQ(address(notation.formatted), address(notation.text));
  }
}

TEST(IpAddresses, other_texts_are_rejected) {
  for (const char* const text : {"",
                                 "localhost",
                                 "192.0.2",
                                 "192.0.2.1.1",
                                 "192.0.2.256",
                                 "192.0.02.1",
                                 "0x7f.0.0.1",
                                 "127.1",
                                 " 192.0.2.1",
                                 "192.0.2.1 ",
                                 "192.0.2.1%1",
                                 "[::1]",
                                 "::1:",
                                 ":::1",
                                 "1:2:3:4:5:6:7",
                                 "::1%",
                                 "12345::",
                                 "::ffff:192.0.2.256",
                                 "192.0.2.1:80",
                                 "*"})
    EXPECT_EQ(IpAddress::parse(text), std::unexpected(system_error(EINVAL))) << text;
  EXPECT_FALSE(IpAddress::parse(std::string_view("192.0.2.1\0", 10)));
  EXPECT_FALSE(IpAddress::parse(std::string(1000, '1')));
  EXPECT_EQ(IpAddress::parse("fe80::1%no-such-interface"), std::unexpected(system_error(ENODEV)));
}

TEST(IpAddresses, a_zone_is_the_name_or_the_index_of_an_interface) {
  const unsigned loopback = ::if_nametoindex("lo");
  ASSERT_NE(loopback, 0U);
  const IpAddress named = address("fe80::1%lo");
  EXPECT_EQ(named.zone(), loopback);
  EXPECT_EQ(named, address("fe80::1%" + std::to_string(loopback)));
  EXPECT_EQ(named.to_string(), "fe80::1%lo");
  EXPECT_NE(named, address("fe80::1"));
  EXPECT_EQ(named.without_zone(), address("fe80::1"));
}

TEST(IpAddresses, have_the_bytes_of_their_family) {
  const IpAddress v4(IpAddress::V4Bytes{192, 0, 2, 1});
  EXPECT_EQ(v4, address("192.0.2.1"));
  EXPECT_EQ(v4.family(), AddressFamily::v4);
  EXPECT_EQ(v4.bytes().size(), 4U);
  EXPECT_EQ(IpAddress::from_bytes(v4.bytes()), v4);
  const IpAddress v6 = address("2001:db8::1");
  EXPECT_EQ(v6.family(), AddressFamily::v6);
  EXPECT_EQ(v6.bytes().size(), 16U);
  EXPECT_EQ(IpAddress::from_bytes(v6.bytes()), v6);
  EXPECT_EQ(IpAddress::from_bytes(v6.bytes().first(5)), std::unexpected(system_error(EINVAL)));
  EXPECT_EQ(IpAddress::from_bytes({}), std::unexpected(system_error(EINVAL)));
}

TEST(IpAddresses, a_mapped_address_is_another_one_until_it_is_unmapped) {
  const IpAddress v4 = address("192.0.2.1");
  const IpAddress mapped(v4.mapped_bytes());
  EXPECT_EQ(mapped, address("::ffff:192.0.2.1"));
  EXPECT_NE(mapped, v4);
  EXPECT_TRUE(mapped.is_v4_mapped());
  EXPECT_FALSE(v4.is_v4_mapped());
  EXPECT_FALSE(address("::fffe:192.0.2.1").is_v4_mapped());
  EXPECT_EQ(mapped.unmapped(), v4);
  EXPECT_EQ(v4.unmapped(), v4);
  EXPECT_EQ(address("::1").unmapped(), address("::1"));
}

/// The texts of the addresses that have a property.
template <bool (IpAddress::*has)() const noexcept>
std::vector<std::string> with(const std::vector<const char*>& texts) {
  std::vector<std::string> found;
  for (const char* const text : texts)
    if ((address(text).*has)()) found.emplace_back(text);
  return found;
}

TEST(IpAddresses, have_the_properties_of_their_ranges) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(with<&IpAddress::is_unspecified>({"0.0.0.0", "::", "::ffff:0.0.0.0", "0.0.0.1", "::1"}),
            (Texts{"0.0.0.0", "::", "::ffff:0.0.0.0"}));
  EXPECT_EQ(with<&IpAddress::is_loopback>({"126.255.255.255", "127.0.0.0", "127.255.255.255",
                                           "128.0.0.0", "::1", "::2", "::ffff:127.0.0.1"}),
            (Texts{"127.0.0.0", "127.255.255.255", "::1", "::ffff:127.0.0.1"}));
  EXPECT_EQ(with<&IpAddress::is_multicast>({"223.255.255.255", "224.0.0.0", "239.255.255.255",
                                            "240.0.0.0", "feff::", "ff02::1"}),
            (Texts{"224.0.0.0", "239.255.255.255", "ff02::1"}));
  EXPECT_EQ(with<&IpAddress::is_link_local>({"169.253.0.1", "169.254.0.1", "169.255.0.1",
                                             "fe7f::", "fe80::", "febf:ffff::", "fec0::"}),
            (Texts{"169.254.0.1", "fe80::", "febf:ffff::"}));
  EXPECT_EQ(with<&IpAddress::is_private>(
                {"9.255.255.255", "10.0.0.0", "11.0.0.0", "172.15.255.255", "172.16.0.0",
                 "172.31.255.255", "172.32.0.0", "192.167.0.0", "192.168.0.0", "192.169.0.0",
                 "fbff::", "fc00::", "fdff::", "fe00::", "::ffff:10.0.0.1"}),
            (Texts{"10.0.0.0", "172.16.0.0", "172.31.255.255", "192.168.0.0",
                   "fc00::", "fdff::", "::ffff:10.0.0.1"}));
}

TEST(IpAddresses, are_ordered_by_family_bytes_and_zone) {
  std::vector<IpAddress> addresses{address("::1"),       address("fe80::1%2"), address("10.0.0.2"),
                                   address("fe80::1%1"), address("9.0.0.0"),   address("::")};
  std::ranges::sort(addresses);
  std::string text;
  for (const IpAddress& sorted : addresses) text += sorted.without_zone().to_string() + ' ';
  EXPECT_EQ(text, "9.0.0.0 10.0.0.2 :: ::1 fe80::1 fe80::1 ");
  EXPECT_LT(addresses[4].zone(), addresses[5].zone());
  const std::unordered_set<IpAddress> set(addresses.begin(), addresses.end());
  EXPECT_EQ(set.size(), addresses.size());
  EXPECT_TRUE(set.contains(address("10.0.0.2")));
}

TEST(IpAddresses, belong_to_endpoints) {
  const Endpoint v4(address("192.0.2.1"), 80);
  EXPECT_EQ(v4, Endpoint::parse("192.0.2.1:80"));
  EXPECT_EQ(v4.ip_address(), address("192.0.2.1"));
  const Endpoint v6(address("fe80::1%lo"), 443);
  EXPECT_EQ(v6, Endpoint::parse("[fe80::1%lo]:443"));
  EXPECT_EQ(v6.ip_address(), address("fe80::1%lo"));
  EXPECT_EQ(v6.port(), 443);
  EXPECT_EQ(Endpoint::unix_name("@name")->ip_address(), std::nullopt);
}

TEST(IpNetworks, contain_the_addresses_with_their_prefix) {
  const IpNetwork private_v4 = network("10.1.2.3/12");
  EXPECT_EQ(private_v4.address(), address("10.0.0.0"));
  EXPECT_EQ(private_v4.prefix_bits(), 12U);
  EXPECT_EQ(private_v4.to_string(), "10.0.0.0/12");
  EXPECT_TRUE(private_v4.contains(address("10.0.0.0")));
  EXPECT_TRUE(private_v4.contains(address("10.15.255.255")));
  EXPECT_FALSE(private_v4.contains(address("10.16.0.0")));
  EXPECT_FALSE(private_v4.contains(address("9.255.255.255")));
  EXPECT_TRUE(private_v4.contains(address("::ffff:10.0.0.1")));
  EXPECT_FALSE(private_v4.contains(address("::10.0.0.1")));
  const IpNetwork v6 = network("2001:db8:8000::/33");
  EXPECT_TRUE(v6.contains(address("2001:db8:ffff::1")));
  EXPECT_FALSE(v6.contains(address("2001:db8:7fff::1")));
  EXPECT_TRUE(network("fe80::/10").contains(address("fe80::1%1")));
}

TEST(IpNetworks, of_all_addresses_contain_one_family) {
  EXPECT_TRUE(network("0.0.0.0/0").contains(address("255.255.255.255")));
  EXPECT_TRUE(network("0.0.0.0/0").contains(address("::ffff:1.2.3.4")));
  EXPECT_FALSE(network("0.0.0.0/0").contains(address("::1")));
  EXPECT_TRUE(network("::/0").contains(address("ffff::")));
  EXPECT_FALSE(network("::/0").contains(address("1.2.3.4")));
  EXPECT_FALSE(network("::/0").contains(address("::ffff:1.2.3.4")));
  EXPECT_EQ(IpNetwork(), network("0.0.0.0/0"));
}

TEST(IpNetworks, of_one_address_need_no_prefix) {
  EXPECT_EQ(network("192.0.2.1"), network("192.0.2.1/32"));
  EXPECT_EQ(network("2001:db8::1"), network("2001:db8::1/128"));
  EXPECT_FALSE(network("192.0.2.1").contains(address("192.0.2.0")));
}

TEST(IpNetworks, of_mapped_addresses_are_those_of_ipv4) {
  EXPECT_EQ(network("::ffff:10.0.0.0/104"), network("10.0.0.0/8"));
  EXPECT_EQ(network("::ffff:192.0.2.1"), network("192.0.2.1"));
}

TEST(IpNetworks, other_texts_are_rejected) {
  for (const char* const text : {"", "/8", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8/8",
                                 "10.0.0.0/ 8", "host/8", "fe80::%1/64", "10.0.0/8"})
    EXPECT_EQ(IpNetwork::parse(text), std::unexpected(system_error(EINVAL))) << text;
  for (const char* const text : {"10.0.0.0/33", "::/129", "10.0.0.0/99999999999"})
    EXPECT_EQ(IpNetwork::parse(text), std::unexpected(system_error(ERANGE))) << text;
  EXPECT_EQ(IpNetwork::make(address("10.0.0.1"), 33), std::unexpected(system_error(ERANGE)));
}

}  // namespace
}  // namespace tambour::ip_address_test
