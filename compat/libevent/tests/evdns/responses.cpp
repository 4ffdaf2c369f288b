// Responses to the resolver: forged, damaged, truncated, and over TCP. Where libevent differs,
// differences.md says so.

#include <algorithm>
#include <random>
#include <set>

#include "evdns/nameserver.h"

namespace {

using DnsResponses = Dns;

const std::string address_counts = bytes("\0\1\0\0\0\0");
const std::string address_record = bytes("\xc0\x0c\0\1\0\1\0\0\0\x09\0\4\1\2\3\4");

/// The names of a packet.
std::string lower_case(std::string packet) {
  std::for_each(packet.begin() + 12, packet.end(), [](char& text) {
    if (text >= 'A' && text <= 'Z') text = static_cast<char>(text + ('a' - 'A'));
  });
  return packet;
}

TEST_F(DnsResponses, to_another_question_are_ignored) {
  Nameserver server(base_, [&](const std::string& query) {
    std::string other = respond_with_address(query);
    other[13] ^= 1;  // In the name.
    sendto(server.fd(), other.data(), other.size(), 0,
           reinterpret_cast<const sockaddr*>(&server.client), sizeof server.client);
    other = respond_with_address(query);
    other[query.size() - 3] = 28;  // The type.
    return other;
  });
  server.add_to(dns_);
  Result result;
  resolve("name.test", result);
  wait_for([&] { return !server.queries.empty(); });
  settle();
  EXPECT_EQ(result.calls, 0);
  const std::string good = respond_with_address(server.queries[0]);
  sendto(server.fd(), good.data(), good.size(), 0,
         reinterpret_cast<const sockaddr*>(&server.client), sizeof server.client);
  wait_for(result);
  EXPECT_EQ(result.data, "\1\2\3\4");
}

TEST_F(DnsResponses, from_another_port_are_ignored) {
  const int other = bound_socket();
  Nameserver server(base_, [&](const std::string& query) {
    const std::string forged = respond_with_address(query);
    sendto(other, forged.data(), forged.size(), 0,
           reinterpret_cast<const sockaddr*>(&server.client), sizeof server.client);
    return std::string();
  });
  server.add_to(dns_);
  Result result;
  resolve("name.test", result);
  wait_for([&] { return !server.queries.empty(); });
  settle();
  EXPECT_EQ(result.calls, 0);
  close(other);
}

TEST_F(DnsResponses, records_of_other_names_are_ignored) {
  Nameserver server(base_, [](const std::string& query) {
    return respond(query, "\x81\x80", address_counts,
                   bytes("\5other\4test\0\0\1\0\1\0\0\0\x09\0\4\1\2\3\4"));
  });
  server.add_to(dns_);
  Result result;
  resolve("name.test", result);
  wait_for(result);
  EXPECT_EQ(result.error, DNS_ERR_NODATA);
}

TEST_F(DnsResponses, aliases_are_followed_in_any_order) {
  Nameserver server(base_, [](const std::string& query) {
    // c: an address; b: alias of c; the name: alias of b.
    return respond(query, "\x81\x80", bytes("\0\3\0\0\0\0"),
                   bytes("\1c\0\0\1\0\1\0\0\0\x63\0\4\1\2\3\4"
                         "\1b\0\0\5\0\1\0\0\0\x07\0\3\1c\0"
                         "\xc0\x0c\0\5\0\1\0\0\0\x33\0\3\1b\0"));
  });
  server.add_to(dns_);
  Result result;
  resolve("name.test", result);
  wait_for(result);
  EXPECT_EQ(result.data, "\1\2\3\4");
  EXPECT_EQ(result.ttl, 7);
  AddressResult found;
  evutil_addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = EVUTIL_AI_CANONNAME;
  evdns_getaddrinfo(dns_, "name.test", nullptr, &hints, &AddressResult::on_addresses, &found);
  wait_for([&] { return found.calls != 0; });
  EXPECT_EQ(found.canonical, "c");
}

TEST_F(DnsResponses, aliases_are_followed_in_any_number) {
  for (const bool is_reversed : {false, true}) {
    Nameserver server(base_, [=](const std::string& query) {
      const auto name = [](int i) {
        return '\1' + std::string(1, static_cast<char>('A' + i)) + '\0';
      };
      std::string records;
      const auto add = [&](const std::string& record) {
        records = is_reversed ? record + records : records + record;
      };
      add(bytes("\xc0\x0c\0\5\0\1\0\0\0\x33\0\3") + name(0));
      for (int i = 0; i < 39; ++i) add(name(i) + bytes("\0\5\0\1\0\0\0\x33\0\3") + name(i + 1));
      add(name(39) + bytes("\0\1\0\1\0\0\0\x63\0\4\1\2\3\4"));
      return respond(query, "\x81\x80", bytes("\0\x29\0\0\0\0"), records);
    });
    evdns_base_clear_nameservers_and_suspend(dns_);
    server.add_to(dns_);
    evdns_base_resume(dns_);
    Result result;
    resolve("name.test", result);
    wait_for(result);
    EXPECT_EQ(result.data, "\1\2\3\4") << is_reversed;
  }
}

TEST_F(DnsResponses, an_error_without_the_question_ends_a_request) {
  Nameserver server(base_, [](const std::string& query) {
    return query.substr(0, 2) + bytes("\x81\x83\0\0\0\0\0\0\0\0");
  });
  server.add_to(dns_);
  Result result;
  resolve("name.test", result);
  wait_for(result);
  EXPECT_EQ(result.error, DNS_ERR_NOTEXIST);
}

TEST_F(DnsResponses, an_alias_may_follow_the_addresses) {
  Nameserver server(base_, [](const std::string& query) {
    return respond(query, "\x81\x80", bytes("\0\2\0\0\0\0"),
                   address_record + bytes("\xc0\x0c\0\5\0\1\0\0\0\x33\0\3\1b\0"));
  });
  server.add_to(dns_);
  Result result;
  resolve("name.test", result);
  wait_for(result);
  EXPECT_EQ(result.data, "\1\2\3\4");
}

TEST_F(DnsResponses, that_are_truncated_are_asked_for_over_tcp) {
  Nameserver server(
      base_,
      [](const std::string& query) {
        return respond(query, "\x83\x80", bytes("\0\0\0\0\0\0"), "");
      },
      true);
  // More than fits into a datagram, and more addresses than evdns returns.
  server.tcp_answer = [](const std::string& query) {
    std::string records;
    for (int i = 0; i < 1000; ++i) records += address_record;
    return respond(query, "\x81\x80", bytes("\x03\xe8\0\0\0\0"), records);
  };
  server.add_to(dns_);
  Result result;
  resolve("name.test", result);
  wait_for(result);
  EXPECT_EQ(result.error, DNS_ERR_NONE);
  EXPECT_EQ(result.count, 32);
  EXPECT_EQ(server.over_tcp.size(), 1U);
  EXPECT_EQ(server.queries.size(), 1U);
}

TEST_F(DnsResponses, over_tcp_may_fail) {
  const std::string truncated = "\x83\x80";
  for (const char* const kind : {"closed", "truncated", "forged", "damaged"}) {
    Nameserver server(
        base_,
        [&](const std::string& query) {
          return respond(query, truncated, bytes("\0\0\0\0\0\0"), "");
        },
        true);
    const bool is_damaged = kind[0] == 'd';
    server.tcp_answer = [&](const std::string& query) -> std::string {
      if (kind[0] == 'c') return {};
      if (kind[0] == 't') return respond(query, truncated, address_counts, address_record);
      std::string packet = respond_with_address(query);
      if (is_damaged) return packet.substr(0, packet.size() - 2);
      packet[0] ^= 1;
      return packet;
    };
    evdns_base_clear_nameservers_and_suspend(dns_);
    server.add_to(dns_);
    Result result;
    resolve("name.test", result);
    wait_for(result);
    EXPECT_EQ(result.error, is_damaged ? DNS_ERR_UNKNOWN : DNS_ERR_TRUNCATED) << kind;
    evdns_base_clear_nameservers_and_suspend(dns_);
    settle();
  }
}

TEST_F(DnsResponses, over_tcp_may_not_come) {
  Nameserver server(base_, [](const std::string& query) {
    return respond(query, "\x83\x80", bytes("\0\0\0\0\0\0"), "");
  });
  // Connections are established, and never accepted.
  ASSERT_EQ(listen(server.tcp(), 5), 0);
  server.add_to(dns_);
  set("timeout", "0.1");
  Result result;
  resolve("name.test", result);
  wait_for(result);
  EXPECT_EQ(result.error, DNS_ERR_TRUNCATED);
}

TEST_F(DnsResponses, in_another_case_are_asked_for_over_tcp) {
  Nameserver server(
      base_, [](const std::string& query) { return lower_case(respond_with_address(query)); },
      true);
  server.tcp_answer = [](const std::string& query) {
    return respond(lower_case(query), "\x81\x80", address_counts,
                   bytes("\xc0\x0c\0\1\0\1\0\0\0\x09\0\4\x09\x09\x09\x09"));
  };
  server.add_to(dns_);
  Result result;
  resolve("a-name-with-many-letters.test", result);
  wait_for(result);
  EXPECT_EQ(result.data, "\x09\x09\x09\x09");
  // Without random case, it does not matter.
  set("randomize-case", "0");
  resolve("A-NAME-with-many-letters.test", result);
  wait_for([&] { return result.calls == 2; });
  EXPECT_EQ(result.data, "\1\2\3\4");
  EXPECT_EQ(server.over_tcp.size(), 1U);
}

TEST_F(DnsResponses, in_another_case_are_accepted_if_there_is_no_tcp) {
  Nameserver server(
      base_, [](const std::string& query) { return lower_case(respond_with_address(query)); });
  server.add_to(dns_);
  Result result;
  resolve("a-name-with-many-letters.test", result);
  wait_for(result);
  EXPECT_EQ(result.data, "\1\2\3\4");
  EXPECT_EQ(server.queries.size(), 2U);
}

TEST_F(DnsResponses, queries_are_unpredictable) {
  Nameserver server(base_, &respond_with_address);
  server.add_to(dns_);
  std::set<std::string> ids;
  std::set<std::string> names;
  Result result;
  for (int i = 1; i <= 30; ++i) {
    resolve("a-name-with-many-letters.test", result);
    wait_for([&] { return result.calls == i; });
  }
  for (const std::string& query : server.queries) {
    ids.insert(query.substr(0, 2));
    names.insert(query.substr(12));
  }
  EXPECT_GT(ids.size(), 25U);
  EXPECT_GT(names.size(), 25U);
  EXPECT_GT((std::set<int>(server.ports.begin(), server.ports.end())).size(), 2U);
}

TEST_F(DnsResponses, that_are_damaged_do_no_harm) {
  std::mt19937 random(1);
  Nameserver server(base_, [&](const std::string& query) {
    std::string packet = respond(
        query, "\x81\x80", bytes("\0\3\0\1\0\0"),
        bytes("\xc0\x0c\0\5\0\1\0\0\0\x33\0\3\1b\0\1b\0\0\1\0\1\0\0\0\x63\0\4\1\2\3\4"
              "\1b\0\0\x1c\0\1\0\0\0\x63\0\4\1\2\3\4"
              "\xc0\x0c\0\6\0\1\0\0\0\x33\0\x16\0\0\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1"));
    const std::size_t first = random() % 4 == 0 ? 2 : query.size();
    for (unsigned i = random() % 6; i != 0; --i)
      packet[first + random() % (packet.size() - first)] = static_cast<char>(random());
    if (random() % 4 == 0) packet.resize(12 + random() % (packet.size() - 12));
    return packet;
  });
  server.add_to(dns_);
  set("timeout", "0.001");
  set("attempts", "1");
  set("max-timeouts", "255");
  set("max-inflight", "1000");
  Result result;
  for (int i = 0; i < 3000; ++i) {
    const int type = i % 3;
    const in_addr address{};
    if (type == 0) resolve("name.test", result);
    if (type == 1) evdns_base_resolve_ipv6(dns_, "name.test", 0, &Result::on_result, &result);
    if (type == 2) evdns_base_resolve_reverse(dns_, &address, 0, &Result::on_result, &result);
    if (i % 100 == 99) wait_for([&] { return result.calls == i + 1; });
  }
}

}  // namespace
