// Names of DNS: text, escapes, limits, comparison and order.
#include <tambour/dns/name.h>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tambour::name_test {
namespace {

dns::Name name(std::string_view text) { return dns::Name::parse(text).value(); }

Error error_of(std::string_view text) {
  const auto parsed = dns::Name::parse(text);
  return parsed ? Error() : parsed.error();
}

TEST(DnsName, is_the_root_by_default) {
  EXPECT_TRUE(dns::Name().is_root());
  EXPECT_EQ(dns::Name(), name("."));
  EXPECT_EQ(dns::Name().to_string(), ".");
  EXPECT_EQ(dns::Name().label_count(), 0U);
  EXPECT_EQ(dns::Name().parent(), dns::Name());
}

TEST(DnsName, is_absolute_with_and_without_a_trailing_dot) {
  EXPECT_EQ(name("www.Example.org").to_string(), "www.Example.org.");
  EXPECT_EQ(name("www.example.org."), name("www.example.org"));
  EXPECT_EQ(name("www.example.org").wire(), std::string_view("\3www\7example\3org\0", 17));
}

TEST(DnsName, compares_without_regard_to_ascii_case) {
  EXPECT_EQ(name("EXAMPLE.org"), name("example.ORG"));
  EXPECT_EQ(name("EXAMPLE.org").hash(), name("example.ORG").hash());
  EXPECT_NE(name("example.org"), name("example.com"));
  // [ and { differ by the bit that distinguishes the cases of letters.
  EXPECT_NE(name("["), name("{"));
}

TEST(DnsName, escapes_bytes_that_zone_files_give_a_meaning) {
  const dns::Name odd = name(R"(a\.b\032\\.\255\000c)");
  EXPECT_EQ(odd.label_count(), 2U);
  EXPECT_EQ(odd.label(), "a.b \\");
  EXPECT_EQ(odd.parent().label(), std::string_view("\xff\0c", 3));
  EXPECT_EQ(odd.to_string(), R"(a\.b\032\\.\255\000c.)");
  EXPECT_EQ(name(odd.to_string()), odd);
}

TEST(DnsName, rejects_invalid_text) {
  const std::vector<std::string> bad{"",    "..",  ".a",   "a..b",  "a..",
                                     "a\\", "\\1", "\\12", "\\1x2", "\\256"};
  for (const std::string& text : bad) EXPECT_EQ(error_of(text), dns::ErrorCode::bad_name) << text;
}

TEST(DnsName, has_limits_for_labels_and_names) {
  const std::string label(63, 'a');
  EXPECT_EQ(error_of(label), Error());
  EXPECT_EQ(error_of(label + "a"), dns::ErrorCode::name_too_long);
  EXPECT_EQ(error_of("\\097" + label), dns::ErrorCode::name_too_long);
  // Three labels of 64 bytes with their lengths, one of 62, and the root: 255 bytes.
  const std::string longest = label + '.' + label + '.' + label + '.' + std::string(61, 'b');
  EXPECT_EQ(name(longest).wire().size(), dns::Name::bytes_max);
  EXPECT_EQ(name(longest + '.').wire().size(), dns::Name::bytes_max);
  EXPECT_EQ(error_of(longest + 'b'), dns::ErrorCode::name_too_long);
  EXPECT_EQ(error_of(longest + ".b"), dns::ErrorCode::name_too_long);
  std::string dotted;
  for (int i = 0; i < 127; ++i) dotted += "a.";
  EXPECT_EQ(name(dotted).label_count(), 127U);
  EXPECT_EQ(error_of(dotted + "a"), dns::ErrorCode::name_too_long);
  EXPECT_EQ(name(dotted).to_string(), dotted);
}

TEST(DnsName, is_made_of_wire_form) {
  const auto subject = [](std::string_view wire) {
    return dns::Name::from_wire(std::as_bytes(std::span(wire.data(), wire.size())));
  };
  EXPECT_EQ(subject(name("a.example").wire()).value(), name("a.example"));
  EXPECT_EQ(subject(std::string_view("\0", 1)).value(), dns::Name());
  for (const std::string_view bad :
       {std::string_view(""), std::string_view("\1a"), std::string_view("\2a\0", 3),
        std::string_view("\1a\0\0", 4), std::string_view("\300\0", 2), std::string_view("\100a")})
    EXPECT_EQ(subject(bad).error(), dns::ErrorCode::bad_name);
  std::string too_long;
  for (int i = 0; i < 128; ++i) too_long += "\1a";
  too_long += '\0';
  EXPECT_EQ(subject(too_long).error(), dns::ErrorCode::bad_name);
}

TEST(DnsName, is_within_its_ancestors) {
  const dns::Name host = name("www.example.org");
  EXPECT_TRUE(host.is_within(host));
  EXPECT_TRUE(host.is_within(name("EXAMPLE.org")));
  EXPECT_TRUE(host.is_within(dns::Name()));
  EXPECT_FALSE(name("example.org").is_within(host));
  EXPECT_FALSE(name("badexample.org").is_within(name("example.org")));
  // The bytes of one label may look like the end of a name.
  EXPECT_FALSE(name("x\\007example\\003org\\000").is_within(name("example.org")));
}

TEST(DnsName, is_extended_by_a_suffix) {
  EXPECT_EQ(name("www").with_suffix(name("example.org")).value(), name("www.example.org"));
  EXPECT_EQ(name("www").with_suffix(dns::Name()).value(), name("www"));
  const std::string label(63, 'a');
  const dns::Name big = name(label + '.' + label + '.' + label);
  EXPECT_EQ(big.with_suffix(name(label)).error(), dns::ErrorCode::name_too_long);
}

TEST(DnsName, has_the_canonical_order) {
  // RFC 4034, section 6.1.
  const std::vector<std::string> ordered{"example",         "a.example",      "yljkjljk.a.example",
                                         "Z.a.example",     "zABC.a.EXAMPLE", "z.example",
                                         "\\001.z.example", "*.z.example",    "\\200.z.example"};
  for (std::size_t i = 0; i + 1 < ordered.size(); ++i) {
    EXPECT_LT(name(ordered[i]), name(ordered[i + 1])) << ordered[i];
    EXPECT_GT(name(ordered[i + 1]), name(ordered[i])) << ordered[i];
  }
  EXPECT_EQ(name("A.b") <=> name("a.B"), std::weak_ordering::equivalent);
}

TEST(DnsName, names_addresses_for_reverse_lookups) {
  constexpr std::array v4{std::byte{192}, std::byte{0}, std::byte{2}, std::byte{1}};
  EXPECT_EQ(dns::Name::for_address(v4).to_string(), "1.2.0.192.in-addr.arpa.");
  std::array<std::byte, 16> v6{};
  v6[0] = std::byte{0x20};
  v6[1] = std::byte{0x01};
  v6[15] = std::byte{0xab};
  EXPECT_EQ(dns::Name::for_address(v6).to_string(),
            "b.a.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.0.0.2.ip6.arpa.");
}

}  // namespace
}  // namespace tambour::name_test
