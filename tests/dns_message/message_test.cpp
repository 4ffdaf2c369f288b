// DNS messages: reading and writing each type of record, limits of size, and malformed messages.
#include <tambour/dns/message.h>

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace tambour::message_test {
namespace {

dns::Name name(std::string_view text) { return dns::Name::parse(text).value(); }

Result<dns::Message> parse(std::string_view bytes) {
  return dns::Message::parse(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

dns::Record record(dns::Type type, dns::Data data) {
  return {.name = name("host.example.org"), .type = type, .ttl = 300, .data = std::move(data)};
}

std::vector<dns::Record> one_of_each_type() {
  return {
      record(dns::Type::a, dns::A{{192, 0, 2, 1}}),
      record(dns::Type::aaaa, dns::Aaaa{{0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}),
      record(dns::Type::cname, dns::Cname{name("alias.example.org")}),
      record(dns::Type::ptr, dns::Ptr{name("ptr.example.org")}),
      record(dns::Type::ns, dns::Ns{name("ns.example.org")}),
      record(dns::Type::soa, dns::Soa{name("ns.example.org"), name("admin.example.org"),
                                      4'000'000'000, 7200, 900, 1'209'600, 300}),
      record(dns::Type::mx, dns::Mx{10, name("mail.example.org")}),
      record(dns::Type::txt, dns::Txt{{"v=spf1 -all", "", std::string(255, 'x'), "\"\\\x01"}}),
      record(dns::Type::srv, dns::Srv{1, 2, 389, name("ldap.example.org")}),
      record(dns::Type::naptr,
             dns::Naptr{100, 50, "s", "SIP+D2U", "!^.*$!sip:a@b!", name("_sip._udp.example.org")}),
      record(dns::Type::caa, dns::Caa{128, "issue", "ca.example.net; account=1"}),
      record(dns::Type::tlsa, dns::Tlsa{3, 1, 1, std::string("\0\1\2\3", 4)}),
      record(dns::Type::svcb, dns::Svcb{0, name("svc.example.net"), {}}),
      record(dns::Type::https, dns::Svcb{1,
                                         dns::Name(),
                                         {{dns::SvcParam::mandatory, std::string("\0\1", 2)},
                                          {dns::SvcParam::alpn, "\2h2\5h3-29"},
                                          {dns::SvcParam::no_default_alpn, ""},
                                          {dns::SvcParam::port, "\x20\xfb"},
                                          {dns::SvcParam::ipv4hint, "\xc0\x01\x02\x01"},
                                          {dns::SvcParam::ech, "secret"},
                                          {dns::SvcParam::ipv6hint, std::string(16, '\1')},
                                          {65280, "private"}}}),
      record(dns::Type(65280), dns::UnknownData{std::string("\xde\xad\0", 3)}),
  };
}

TEST(DnsMessage, keeps_every_record_type_in_a_round_trip) {
  dns::Message message = dns::Message::query(name("host.example.org"), dns::Type::any, 4711);
  message.is_response = true;
  message.recursion_available = true;
  message.answers = one_of_each_type();
  message.authorities = one_of_each_type();
  message.additionals = one_of_each_type();
  message.edns->options = {{dns::Option::cookie, "12345678"}, {15, std::string("\0\x16", 2)}};
  const auto bytes = message.write();
  ASSERT_TRUE(bytes) << bytes.error().message();
  const auto parsed = parse(*bytes);
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(*parsed, message);
  EXPECT_EQ(parsed->write(), bytes);
}

TEST(DnsMessage, keeps_every_flag_and_code) {
  for (unsigned bits = 0; bits < 1U << 7U; ++bits) {
    const auto bit = [bits](unsigned at) { return (bits >> at & 1U) != 0; };
    dns::Message message;
    message.id = static_cast<std::uint16_t>(bits * 501);
    message.is_response = bit(0);
    message.authoritative = bit(1);
    message.truncated = bit(2);
    message.recursion_desired = bit(3);
    message.recursion_available = bit(4);
    message.authentic_data = bit(5);
    message.checking_disabled = bit(6);
    message.opcode = dns::Opcode(bits % 16);
    message.rcode = dns::Rcode(bits % 13);
    EXPECT_EQ(parse(message.write().value()), message);
  }
}

TEST(DnsMessage, carries_extended_response_codes_in_edns) {
  dns::Message message;
  message.rcode = dns::Rcode::bad_cookie;
  EXPECT_EQ(message.write().error(), dns::ErrorCode::bad_edns);
  message.edns = {.udp_bytes = 4096, .version = 1, .dnssec_ok = true, .flags = 0x1234};
  EXPECT_EQ(parse(message.write().value()), message);
}

TEST(DnsMessage, writes_records_as_zone_files_do) {
  std::vector<std::string> lines;
  for (const dns::Record& record : one_of_each_type()) {
    const std::string line = record.to_string();
    EXPECT_TRUE(line.starts_with("host.example.org. 300 IN " + to_string(record.type) + ' '))
        << line;
    lines.push_back(line.substr(line.find(' ', line.find("IN ") + 3) + 1));
  }
  const std::vector<std::string> expected{
      "192.0.2.1",
      "2001:db8::1",
      "alias.example.org.",
      "ptr.example.org.",
      "ns.example.org.",
      "ns.example.org. admin.example.org. 4000000000 7200 900 1209600 300",
      "10 mail.example.org.",
      "\"v=spf1 -all\" \"\" \"" + std::string(255, 'x') + R"(" "\"\\\001")",
      "1 2 389 ldap.example.org.",
      R"(100 50 "s" "SIP+D2U" "!^.*$!sip:a@b!" _sip._udp.example.org.)",
      R"(128 issue "ca.example.net; account=1")",
      "3 1 1 00010203",
      "0 svc.example.net.",
      R"(1 . key0="\000\001" key1="\002h2\005h3-29" key2 key3=" \251" key4="\192\001\002\001")"
      R"( key5="secret" key6="\001\001\001\001\001\001\001\001\001\001\001\001\001\001\001\001")"
      R"( key65280="private")",
      "\\# 3 dead00",
  };
  EXPECT_EQ(lines, expected);
}

TEST(DnsMessage, compresses_names) {
  dns::Message message = dns::Message::query(name("www.example.org"), dns::Type::a, 1);
  message.edns.reset();
  for (int i = 0; i < 10; ++i) {
    dns::Record answer = record(dns::Type::a, dns::A{});
    answer.name = name("www.example.org");
    message.answers.push_back(answer);
  }
  EXPECT_EQ(message.write().value().size(), 12 + 21 + 10 * 16U);
  // A name in another case stays as it is; so does one in the data of a type that must not be
  // compressed.
  message.answers.resize(1);
  message.answers[0].name = name("WWW.example.org");
  message.answers.push_back(record(dns::Type::srv, dns::Srv{0, 0, 0, name("www.example.org")}));
  const std::string bytes = message.write().value();
  EXPECT_EQ(bytes.size(), 12 + 21 + (4 + 2 + 14) + (5 + 2 + 10 + 6 + 17));
  EXPECT_EQ(parse(bytes)->answers[0].name.to_string(), "WWW.example.org.");
}

TEST(DnsMessage, compresses_against_names_at_low_offsets_only) {
  dns::Message message;
  for (int i = 0; i < 2000; ++i) {
    dns::Record entry =
        record(dns::Type::ns, dns::Ns{name("n" + std::to_string(i / 2) + ".example.org")});
    entry.name = name("z" + std::to_string(i) + ".example.net");
    message.answers.push_back(entry);
  }
  const std::string bytes = message.write().value();
  EXPECT_GT(bytes.size(), 0x4000U);
  EXPECT_EQ(parse(bytes), message);
}

TEST(DnsMessage, omits_records_that_do_not_fit) {
  dns::Message message = dns::Message::query(name("example.org"), dns::Type::a, 1);
  for (std::uint8_t i = 0; i < 100; ++i) {
    message.answers.push_back(record(dns::Type::a, dns::A{{10, 0, 0, i}}));
    message.additionals.push_back(record(dns::Type::a, dns::A{{10, 0, 1, i}}));
  }
  for (std::size_t limit = 0; limit < 4000; ++limit) {
    const auto bytes = message.write(limit);
    if (limit < 12 + 17 + 11) {
      EXPECT_EQ(bytes.error(), dns::ErrorCode::message_too_long);
      continue;
    }
    ASSERT_LE(bytes->size(), limit);
    const auto parsed = parse(*bytes);
    ASSERT_TRUE(parsed);
    EXPECT_TRUE(parsed->edns);
    EXPECT_EQ(parsed->truncated, parsed->answers.size() < message.answers.size());
    if (parsed->truncated) {
      EXPECT_TRUE(parsed->additionals.empty());
      EXPECT_GT(bytes->size() + 16 + 14, limit);
    }
  }
}

TEST(DnsMessage, refuses_to_write_data_that_is_not_of_its_type) {
  const auto error_of = [](dns::Record wrong) {
    dns::Message message;
    message.answers.push_back(std::move(wrong));
    const auto bytes = message.write();
    return bytes ? Error() : bytes.error();
  };
  EXPECT_EQ(error_of(record(dns::Type::aaaa, dns::A{})), dns::ErrorCode::bad_record);
  EXPECT_EQ(error_of(record(dns::Type::a, dns::UnknownData{"1234"})), dns::ErrorCode::bad_record);
  EXPECT_EQ(error_of(record(dns::Type::txt, dns::Txt{})), dns::ErrorCode::bad_record);
  EXPECT_EQ(error_of(record(dns::Type::txt, dns::Txt{{std::string(256, 'a')}})),
            dns::ErrorCode::bad_record);
  EXPECT_EQ(error_of(record(dns::Type::caa, dns::Caa{0, "", ""})), dns::ErrorCode::bad_record);
  EXPECT_EQ(error_of(record(dns::Type::caa, dns::Caa{0, "is-sue", ""})),
            dns::ErrorCode::bad_record);
  EXPECT_EQ(error_of(record(dns::Type(999), dns::UnknownData{std::string(65536, 'a')})),
            dns::ErrorCode::bad_record);
  EXPECT_EQ(error_of(record(dns::Type::https, dns::Svcb{1, dns::Name(), {{3, "ab"}, {1, "\1a"}}})),
            dns::ErrorCode::bad_record);
  EXPECT_EQ(error_of(record(dns::Type::opt, dns::UnknownData{})), Error());
}

TEST(DnsMessage, answers_a_question) {
  dns::Message question = dns::Message::query(name("example.org"), dns::Type::mx, 99);
  question.edns->dnssec_ok = true;
  const dns::Message response = dns::Message::response_to(question);
  EXPECT_TRUE(response.is_response);
  EXPECT_EQ(response.id, 99);
  EXPECT_EQ(response.questions, question.questions);
  EXPECT_TRUE(response.edns->dnssec_ok);
  question.edns.reset();
  EXPECT_FALSE(dns::Message::response_to(question).edns);
}

// Malformed input.

constexpr std::string_view header_of_response{"\0\1\x80\0\0\0\0\1\0\0\0\0", 12};

Error error_of(std::string bytes) {
  const auto parsed = parse(bytes);
  return parsed ? Error() : parsed.error();
}

/// A response with one record.
std::string with_record(std::string_view owner, std::string_view type, std::string_view data,
                        int size = -1) {
  std::string bytes(header_of_response);
  bytes += owner;
  bytes += type;
  bytes += std::string_view("\0\1\0\0\0\1\0", 7);
  bytes += static_cast<char>(size < 0 ? data.size() : static_cast<std::size_t>(size));
  bytes += data;
  return bytes;
}

const std::string root(1, '\0');

std::string type(char number) { return std::string(1, '\0') + number; }

TEST(DnsMessage, rejects_truncated_messages_and_trailing_bytes) {
  dns::Message message;
  message.answers = one_of_each_type();
  message.edns.emplace();
  const std::string bytes = message.write().value();
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_TRUE(error_of(bytes.substr(0, size))) << size;
  EXPECT_EQ(error_of(bytes), Error());
  EXPECT_EQ(error_of(bytes + '\0'), dns::ErrorCode::bad_message);
  EXPECT_EQ(error_of(std::string(65536, '\0')), dns::ErrorCode::message_too_long);
}

TEST(DnsMessage, rejects_forward_pointers) {
  using namespace std::string_literals;
  EXPECT_EQ(error_of(with_record("\xc0\x0c"s, type(99), "")), dns::ErrorCode::bad_pointer);
  EXPECT_EQ(error_of(with_record("\1a\xc0\x0c"s, type(99), "")), dns::ErrorCode::bad_pointer);
  EXPECT_EQ(error_of(with_record("\xc0\x20"s, type(99), "")), dns::ErrorCode::bad_pointer);
  EXPECT_EQ(error_of(with_record("\xff\xff"s, type(99), "")), dns::ErrorCode::bad_pointer);
  EXPECT_EQ(error_of(with_record("\x40"s + "a\0"s, type(99), "")), dns::ErrorCode::bad_message);
  EXPECT_EQ(error_of(with_record("\x80"s + "a\0"s, type(99), "")), dns::ErrorCode::bad_message);
  // The bytes before the record are a header whose second half happens to be names.
  EXPECT_EQ(error_of(with_record("\xc0\x04"s, type(99), "")), Error());
}

TEST(DnsMessage, rejects_names_above_255_bytes) {
  std::string labels;
  for (int i = 0; i < 127; ++i) labels += "\1a";
  EXPECT_EQ(error_of(with_record(labels + '\0', type(99), "")), Error());
  EXPECT_EQ(error_of(with_record("\1b" + labels + '\0', type(99), "")),
            dns::ErrorCode::name_too_long);
  // Through a pointer: the question is the name of 255 bytes.
  std::string bytes("\0\1\x80\0\0\1\0\1\0\0\0\0", 12);
  bytes += labels + std::string("\0\0\1\0\1", 5) + "\1b\xc0\x0c";
  bytes += std::string("\0\x63\0\1\0\0\0\0\0\0", 10);
  EXPECT_EQ(error_of(bytes), dns::ErrorCode::name_too_long);
}

TEST(DnsMessage, has_data_of_the_size_of_its_type) {
  using namespace std::string_literals;
  const auto bad = [](char number, const std::string& data) {
    EXPECT_EQ(error_of(with_record(root, type(number), data)), dns::ErrorCode::bad_record)
        << int(number) << ' ' << testing::PrintToString(data);
  };
  bad(1, "123");
  bad(1, "12345");
  bad(28, std::string(15, 'a'));
  bad(28, std::string(17, 'a'));
  bad(5, "");
  bad(5, "\1a\0b"s);
  bad(15, "\0"s);
  bad(15, "\0\1\1a"s);
  bad(6, "\0\0"s + std::string(19, '\0'));
  bad(6, "\0\0"s + std::string(21, '\0'));
  bad(16, "");
  bad(16, "\5abc");
  bad(33, "\0\0\0\0\0\0"s);
  bad(35, "\0\0\0\0\1s"s);
  bad(52, "\1\1");
  bad(64, "\0\1"s);
  bad(64, "\0\1\0\0\3\0\1a"s);             // A port of one byte.
  bad(64, "\0\1\0\0\3\0\2ab\0\3\0\2ab"s);  // A key twice.
  bad(64, "\0\1\0\0\4\0\0"s);              // No address.
  bad(64, "\0\1\0\0\0\0\2\0\3"s);          // Requires a key that is absent.
  bad(64, "\0\1\0\0\0\0\2\0\0"s);          // Requires itself.
  bad(64, "\0\1\0\0\1\0\2\2a"s);           // A protocol that is cut off.
  bad(64, "\0\1\0\0\2\0\0"s);              // No default protocols, and no others.
  bad(64, "\0\1\xc0\x04"s);                // A compressed name.
  EXPECT_EQ(error_of(with_record(root, type(5), "\xc0\x04"s)), Error());
  EXPECT_EQ(error_of(with_record(root, type(1), "1234", 5)), dns::ErrorCode::bad_message);
  EXPECT_EQ(error_of(with_record(root, "\1\1"s, "\0\0v"s)), dns::ErrorCode::bad_record);  // CAA
}

TEST(DnsMessage, rejects_misplaced_or_repeated_opt) {
  dns::Message message;
  message.edns.emplace();
  std::string bytes = message.write().value();
  const std::string opt = bytes.substr(12);
  EXPECT_EQ(error_of(bytes), Error());
  bytes[11] = 2;
  EXPECT_EQ(error_of(bytes + opt), dns::ErrorCode::bad_edns);
  bytes[11] = 0;
  bytes[7] = 1;
  EXPECT_EQ(error_of(bytes), dns::ErrorCode::bad_edns);
  bytes[7] = 0;
  bytes[11] = 1;
  EXPECT_EQ(error_of(bytes.substr(0, 12) + "\1a" + opt), dns::ErrorCode::bad_edns);
  bytes.back() = 3;
  EXPECT_EQ(error_of(bytes + std::string("\0\1\0", 3)), dns::ErrorCode::bad_record);
  bytes.back() = 4;
  EXPECT_EQ(error_of(bytes + std::string("\0\1\0\1", 4)), dns::ErrorCode::bad_record);
}

TEST(DnsMessage, reads_a_time_to_live_above_31_bits_as_zero) {
  std::string bytes = with_record(root, type(1), "1234");
  bytes[12 + 1 + 4] = '\x80';
  EXPECT_EQ(parse(bytes)->answers[0].ttl, 0U);
  bytes[12 + 1 + 4] = '\x7f';
  EXPECT_EQ(parse(bytes)->answers[0].ttl, 0x7f000001U);
}

TEST(DnsMessage, has_empty_data_in_updates_only) {
  std::string bytes = with_record(root, type(1), "");
  EXPECT_EQ(error_of(bytes), dns::ErrorCode::bad_record);
  bytes[2] = '\x28';
  const auto update = parse(bytes);
  ASSERT_TRUE(update);
  EXPECT_EQ(update->answers[0].data, dns::Data(dns::UnknownData{}));
  EXPECT_EQ(update->write(), bytes);
}

TEST(DnsTypes, have_names) {
  for (unsigned value = 0; value <= UINT16_MAX; ++value)
    ASSERT_EQ(dns::parse_type(to_string(dns::Type(value))), dns::Type(value));
  EXPECT_EQ(to_string(dns::Type::https), "HTTPS");
  EXPECT_EQ(to_string(dns::Type(731)), "TYPE731");
  EXPECT_EQ(dns::parse_type("aaaa"), dns::Type::aaaa);
  EXPECT_EQ(dns::parse_type("type1"), dns::Type::a);
  for (const char* bad : {"", "AA", "TYPE", "TYPE65536", "TYPE-1", "TYPE 1"})
    EXPECT_EQ(dns::parse_type(bad).error(), system_error(EINVAL)) << bad;
}

TEST(DnsSvcb, returns_its_parameters) {
  const dns::Svcb svcb{
      1, dns::Name(), {{dns::SvcParam::alpn, "\2h2\2h3"}, {dns::SvcParam::port, "\1\2"}}};
  EXPECT_EQ(svcb.alpn(), (std::vector<std::string>{"h2", "h3"}));
  EXPECT_EQ(svcb.port(), 258);
  EXPECT_TRUE(dns::Svcb().alpn().empty());
  EXPECT_EQ(dns::Svcb().port(), 0);
  EXPECT_TRUE((dns::Svcb{1, dns::Name(), {{dns::SvcParam::alpn, "\5h2"}}}.alpn().empty()));
}

TEST(DnsErrors, have_messages) {
  EXPECT_EQ(make_error_code(dns::ErrorCode::no_such_name).message(),
            "The domain name does not exist (NXDOMAIN)");
  EXPECT_EQ(make_error_code(dns::ErrorCode::bad_pointer).category().name(),
            std::string("tambour.dns"));
  EXPECT_EQ(make_error_code(dns::ErrorCode(999)).message(), "Unknown DNS error");
}

}  // namespace
}  // namespace tambour::message_test
