// The resolver in a simulation: a client, and name servers on other hosts.
#include <netdb.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "dns/resolver_fixture.h"
#include "support/log_lines.h"

namespace tambour::resolver_test {
namespace {

using namespace std::chrono_literals;
using test::a_record;
using test::aaaa_record;
using test::cname_record;
using test::dns_name;
using Found = test::ResolverTest::Found;

class DnsResolving : public test::ResolverTest {};

TEST_F(DnsResolving, queries_both_families) {
  EXPECT_EQ(text_of("www.example.org"), "2001:db8::1 192.0.2.1");
  EXPECT_EQ(questions(), 2U);
  EXPECT_EQ(text_of("WWW.Example.org", AddressFamily::v4), "192.0.2.1");
  EXPECT_EQ(text_of("www.example.org.", AddressFamily::v6), "2001:db8::1");
  EXPECT_EQ(questions(), 2U) << "the cache was not used";
  EXPECT_EQ(resolve("www.example.org", AddressFamily::v4)->front().port(), 80);
}

TEST_F(DnsResolving, needs_no_server_for_literal_addresses_and_localhost) {
  EXPECT_EQ(text_of("192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(text_of("127.1"), "127.0.0.1");
  EXPECT_EQ(text_of("0x7f.0.0.01"), "127.0.0.1");
  EXPECT_EQ(text_of("2001:db8::7"), "2001:db8::7");
  EXPECT_EQ(text_of("localhost"), "::1 127.0.0.1");
  EXPECT_EQ(text_of("a.LOCALHOST."), "::1 127.0.0.1");
  EXPECT_EQ(resolve("192.0.2.7", AddressFamily::v6).error(), resolver_error(EAI_ADDRFAMILY));
  EXPECT_EQ(questions(), 0U);
}

TEST_F(DnsResolving, rejects_addresses_with_trailing_text) {
  // inet_aton(3) ignores what follows white space: CVE-2016-10739.
  for (const char* const bad :
       {"127.0.0.1 example.org", "127.0.0.1 ", "127.1\t", "1\n.example.org"})
    EXPECT_EQ(resolve(bad).error(), resolver_error(EAI_NONAME)) << bad;
}

TEST_F(DnsResolving, rejects_invalid_names) {
  const std::string label(64, 'a');
  for (const std::string& bad :
       {std::string(), std::string("..."), std::string("a..b"),
        std::string("www\0.example.org", 16), label, std::string(256, 'a'), std::string(".")}) {
    EXPECT_EQ(resolve(bad).error(), resolver_error(EAI_NONAME)) << bad;
  }
  EXPECT_EQ(resolve("b\xc3\xbc"
                    "cher.example")
                .error(),
            dns::ErrorCode::non_ascii_name);
  EXPECT_LE(questions(), 2U);
}

TEST_F(DnsResolving, distinguishes_names_that_do_not_exist_from_names_without_addresses) {
  both([](test::NameServer& server) {
    server.add({.name = dns_name("mail.example.org"), .type = dns::Type::mx, .data = dns::Mx{}});
  });
  EXPECT_EQ(resolve("nothing.example.org").error(), resolver_error(EAI_NONAME));
  EXPECT_EQ(resolve("mail.example.org").error(), resolver_error(EAI_NODATA));
}

TEST_F(DnsResolving, follows_cnames_and_ignores_other_records) {
  servers[0]->add(cname_record("alias.example.org", "other.example.net"));
  servers[0]->add(cname_record("other.example.net", "www.example.org"));
  servers[0]->set_change([](const dns::Message&, dns::Message& response, bool) {
    // In the wrong order, and with an address that nobody asked for.
    std::ranges::reverse(response.answers);
    response.answers.push_back(a_record("evil.example", {6, 6, 6, 6}));
    response.additionals.push_back(a_record("alias.example.org", {6, 6, 6, 7}));
    return true;
  });
  EXPECT_EQ(text_of("alias.example.org", AddressFamily::v4), "192.0.2.1");
}

TEST_F(DnsResolving, ends_a_loop_of_cnames) {
  both([](test::NameServer& server) {
    server.add(cname_record("a.example.org", "b.example.org"));
    server.add(cname_record("b.example.org", "a.example.org"));
  });
  EXPECT_EQ(resolve("a.example.org").error(), resolver_error(EAI_NODATA));
}

TEST_F(DnsResolving, shares_one_query_between_equal_lookups) {
  dns::Resolver& shared = the_resolver();
  constexpr int count = 10'000;
  int ended = 0;
  TaskScope scope(*loop);
  for (int i = 0; i < count; ++i) {
    scope.spawn([&]() -> Task<> {
      const auto found = co_await shared.resolve("www.example.org", 80);
      if (found && found->size() == 2) ++ended;
      if (ended == count) simulation.stop();
    });
  }
  simulation.run(1min);
  EXPECT_EQ(ended, count);
  EXPECT_EQ(questions(), 2U);
  EXPECT_EQ(shared.stats().coalesced, 2U * (count - 1));
  EXPECT_EQ(shared.stats().udp_sent, 2U);
}

TEST_F(DnsResolving, limits_waiting_lookups) {
  dns::Resolver& limited = make({.lookups_max = 10});
  int refused = 0;
  TaskScope scope(*loop);
  for (int i = 0; i < 20; ++i) {
    scope.spawn([&, i]() -> Task<> {
      const auto found =
          co_await limited.resolve("n" + std::to_string(i) + ".example.org", 80, AddressFamily::v4);
      if (found.error() == dns::ErrorCode::too_many_lookups) ++refused;
    });
  }
  EXPECT_EQ(refused, 10);
  simulation.run(10s);
  EXPECT_TRUE(scope.empty());
}

TEST_F(DnsResolving, limits_the_queries_in_flight) {
  for (const std::size_t limit : {3, 0}) {
    dns::Resolver& limited = make({.queries_max = limit});
    TaskScope scope(*loop);
    int ended = 0;
    for (int i = 0; i < 100; ++i) {
      const std::string name = "n" + std::to_string(i) + ".example.org";
      servers[0]->add(a_record(name, {10, 0, 0, 1}));
      scope.spawn([&, name]() -> Task<> {
        const auto found = co_await limited.resolve(name, 80, AddressFamily::v4);
        if (found) ++ended;
      });
    }
    simulation.run_for(10s);
    EXPECT_EQ(ended, 100) << limit;
  }
}

TEST_F(DnsResolving, queries_that_wait_for_the_limit_can_be_cancelled) {
  dns::Resolver& limited = make({.queries_max = 3});
  TaskScope ended_early(*loop);
  TaskScope scope(*loop);
  std::vector<int> ended;
  for (int i = 0; i < 100; ++i) {
    const std::string name = "n" + std::to_string(i) + ".example.org";
    servers[0]->add(a_record(name, {10, 0, 0, 1}));
    (i % 4 == 0 ? scope : ended_early).spawn([&, name, i]() -> Task<> {
      const auto found = co_await limited.resolve(name, 80, AddressFamily::v4);
      if (found) ended.push_back(i);
    });
  }
  ended_early.request_stop();
  simulation.run_for(10s);
  EXPECT_TRUE(ended_early.empty());
  EXPECT_EQ(ended.size(), 25U);
  EXPECT_TRUE(std::ranges::all_of(ended, [](int i) { return i % 4 == 0; }));
  EXPECT_EQ(limited.stats().in_flight, 0U);
}

TEST_F(DnsResolving, keeps_answers_exactly_for_their_time_to_live) {
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
  const TimePoint answered = simulation.now();
  const auto at = [&](Duration time) { pass(answered + time - simulation.now()); };
  both([](test::NameServer& server) {
    server.clear();
    server.add(a_record("www.example.org", {192, 0, 2, 2}));
  });
  at(59s);
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
  EXPECT_EQ(questions(), 1U);
  at(60s);
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.2");
  EXPECT_EQ(questions(), 2U);
}

TEST_F(DnsResolving, keeps_negative_answers_for_the_time_of_their_authority) {
  EXPECT_EQ(resolve("no.example.org", AddressFamily::v4).error(), resolver_error(EAI_NONAME));
  EXPECT_EQ(questions(), 1U);
  pass(29s);
  EXPECT_EQ(resolve("no.example.org", AddressFamily::v4).error(), resolver_error(EAI_NONAME));
  EXPECT_EQ(questions(), 1U);
  pass(1s);
  EXPECT_EQ(resolve("no.example.org", AddressFamily::v4).error(), resolver_error(EAI_NONAME));
  EXPECT_EQ(questions(), 2U);
  // Without an authority, a negative answer must not be kept: RFC 2308, section 5.
  both([](test::NameServer& server) { server.set_negative_ttl(std::nullopt); });
  EXPECT_FALSE(resolve("never.example.org", AddressFamily::v4));
  EXPECT_FALSE(resolve("never.example.org", AddressFamily::v4));
  EXPECT_EQ(questions(), 4U);
}

TEST_F(DnsResolving, does_not_keep_answers_without_time_to_live) {
  both([](test::NameServer& server) { server.add(a_record("now.example.org", {1, 2, 3, 4}, 0)); });
  EXPECT_EQ(text_of("now.example.org", AddressFamily::v4), "1.2.3.4");
  EXPECT_EQ(text_of("now.example.org", AddressFamily::v4), "1.2.3.4");
  EXPECT_EQ(questions(), 2U);
}

TEST_F(DnsResolving, limits_the_memory_of_the_cache) {
  dns::Resolver& small = make({.cache_bytes_max = 20'000});
  for (int i = 0; i < 200; ++i) {
    const std::string name = "n" + std::to_string(i) + ".example.org";
    servers[0]->add(a_record(name, {10, 0, 0, 1}));
    EXPECT_TRUE(run(small.resolve(name, 80, AddressFamily::v4)));
    EXPECT_LE(small.stats().cache_bytes, 20'000U);
  }
  EXPECT_GT(small.stats().cache_bytes, 10'000U);
  EXPECT_EQ(questions(), 200U);
  EXPECT_TRUE(run(small.resolve("n199.example.org", 80, AddressFamily::v4)));
  EXPECT_EQ(questions(), 200U);
  EXPECT_TRUE(run(small.resolve("n0.example.org", 80, AddressFamily::v4)));
  EXPECT_EQ(questions(), 201U);
  small.clear_cache();
  EXPECT_EQ(small.stats().cache_bytes, 0U);
}

TEST_F(DnsResolving, caches_failures_for_one_second) {
  both([](test::NameServer& server) {
    server.set_change([](const dns::Message&, dns::Message& response, bool) {
      response.rcode = dns::Rcode::server_failure;
      response.answers.clear();
      return true;
    });
  });
  EXPECT_EQ(resolve("www.example.org", AddressFamily::v4).error(), resolver_error(EAI_AGAIN));
  EXPECT_EQ(questions(), 2U) << "each server is asked once";
  EXPECT_EQ(resolve("www.example.org", AddressFamily::v4).error(), resolver_error(EAI_AGAIN));
  EXPECT_EQ(questions(), 2U);
  both([](test::NameServer& server) { server.set_change(nullptr); });
  pass(1s);
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
}

TEST_F(DnsResolving, tries_the_next_server_after_servfail_or_refused) {
  for (const dns::Rcode code : {dns::Rcode::server_failure, dns::Rcode::refused, dns::Rcode(9)}) {
    servers[0]->set_change([code](const dns::Message&, dns::Message& response, bool) {
      response.rcode = code;
      response.answers.clear();
      return true;
    });
    make();
    EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
  }
}

TEST_F(DnsResolving, fails_over_from_a_dead_server) {
  test::LogLines log;
  servers[0]->set_change([](const dns::Message&, dns::Message&, bool) { return false; });
  const TimePoint begin = simulation.now();
  EXPECT_EQ(text_of("www.example.org"), "2001:db8::1 192.0.2.1");
  EXPECT_LT(simulation.now() - begin, 1s) << "the timeout of resolv.conf is 5 s";
  servers[0]->udp_questions = 0;
  servers[1]->udp_questions = 0;
  constexpr int count = 500;
  for (int i = 0; i < count; ++i) {
    const std::string name = "n" + std::to_string(i) + ".example.org";
    servers[1]->add(a_record(name, {10, 0, 0, 1}));
    const TimePoint asked = simulation.now();
    EXPECT_EQ(text_of(name, AddressFamily::v4), "10.0.0.1");
    EXPECT_LT(simulation.now() - asked, 10ms);
    pass(100ms);
  }
  EXPECT_LE(servers[0]->udp_questions, count * 5U / 100);
  EXPECT_GE(servers[0]->udp_questions, 1U) << "nothing would notice that it is back";
  EXPECT_TRUE(log.has("component=dns message=\"a name server does not answer\" server="));
  EXPECT_FALSE(log.has("answers again"));
  const auto stats = resolver->name_server_stats();
  ASSERT_EQ(stats.size(), 2U);
  EXPECT_EQ(stats[0].endpoint, test::endpoint_of(*hosts[0]));
  EXPECT_GE(stats[0].timeouts, 2U);
  EXPECT_EQ(stats[0].responses, 0U);
  EXPECT_EQ(stats[0].latency, Duration::zero());
  EXPECT_FALSE(stats[0].is_responding);
  EXPECT_GE(stats[1].responses, std::uint64_t{count});
  EXPECT_EQ(stats[1].timeouts, 0U);
  EXPECT_TRUE(stats[1].is_responding);
  servers[0]->set_change(nullptr);
  servers[1]->set_change([](const dns::Message&, dns::Message&, bool) { return false; });
  EXPECT_EQ(text_of("again.www.example.org"), "Name or service not known");
  EXPECT_TRUE(log.has("message=\"a name server answers again\" server="));
  EXPECT_TRUE(resolver->name_server_stats()[0].is_responding);
}

TEST_F(DnsResolving, fails_over_from_a_server_that_does_not_listen) {
  servers[0]->stop();
  const TimePoint begin = simulation.now();
  EXPECT_EQ(text_of("www.example.org"), "2001:db8::1 192.0.2.1");
  EXPECT_LT(simulation.now() - begin, 10ms);
}

TEST_F(DnsResolving, ends_within_the_time_of_the_configuration) {
  configure("options timeout:2 attempts:3\n");
  both([](test::NameServer& server) {
    server.set_change([](const dns::Message&, dns::Message&, bool) { return false; });
  });
  const TimePoint begin = simulation.now();
  EXPECT_EQ(resolve("www.example.org", AddressFamily::v4).error(), resolver_error(EAI_AGAIN));
  EXPECT_GE(simulation.now() - begin, 6s);
  EXPECT_LT(simulation.now() - begin, 6100ms);
  EXPECT_LT(questions(), 20U);
}

TEST_F(DnsResolving, accepts_a_late_response_after_failover) {
  Duration delay = 800ms;
  EXPECT_TRUE(the_resolver().name_server_stats().empty()) << "the files were not read";
  both([&](test::NameServer& server) { server.stop(); });
  // A server that answers after 800 ms: later than the patience of 400 ms.
  UdpSocket slow = UdpSocket::bind(*loops[0], test::endpoint_of(*hosts[0])).value();
  TaskScope scope(*loops[0]);
  static_cast<void>(slow.serve({.on_datagrams = [&](UdpSocket& socket, DatagramBatch& batch) {
    for (const Datagram datagram : batch) {
      const auto question = dns::Message::parse(datagram.bytes()).value();
      std::string response = servers[0]->response_to(question).write().value();
      scope.spawn([&socket, to = datagram.peer(), response, delay]() -> Task<> {
        static_cast<void>(co_await sleep_for(delay));
        static_cast<void>(socket.try_send_to(std::as_bytes(std::span(response)), to));
      });
    }
    batch.clear();
  }}));
  const TimePoint begin = simulation.now();
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
  EXPECT_LT(simulation.now() - begin, 900ms);
  const auto stats = resolver->name_server_stats();
  EXPECT_EQ(stats.at(0).responses, 1U);
  EXPECT_EQ(stats.at(0).timeouts, 1U);
  EXPECT_GE(stats.at(0).latency, 800ms);
  EXPECT_LT(stats.at(0).latency, 900ms);
  scope.request_stop();
}

TEST_F(DnsResolving, uses_tcp_for_truncated_answers_and_keeps_the_connection) {
  both([](test::NameServer& server) {
    for (std::uint8_t i = 0; i < 200; ++i) server.add(a_record("big.example.org", {10, 0, 1, i}));
  });
  EXPECT_EQ(resolve("big.example.org", AddressFamily::v4)->size(), 200U);
  EXPECT_EQ(servers[0]->udp_questions, 1U);
  EXPECT_EQ(servers[0]->tcp_questions, 1U);
  resolver->clear_cache();
  EXPECT_EQ(resolve("big.example.org", AddressFamily::v4)->size(), 200U);
  EXPECT_EQ(servers[0]->tcp_questions, 2U);
  EXPECT_EQ(servers[0]->tcp_connections, 1U);
}

/// A response over TCP has room for 4,000.
TEST_F(DnsResolving, uses_a_limited_number_of_addresses) {
  both([](test::NameServer& server) {
    for (int i = 0; i < 300; ++i) {
      const auto high = static_cast<std::uint8_t>(i / 200);
      const auto low = static_cast<std::uint8_t>(i % 200);
      server.add(a_record("big.example.org", {10, 0, high, low}));
    }
  });
  EXPECT_EQ(resolve("big.example.org", AddressFamily::v4)->size(), 256U);
}

TEST_F(DnsResolving, uses_only_tcp_with_use_vc) {
  configure("options use-vc\n");
  EXPECT_EQ(text_of("www.example.org"), "2001:db8::1 192.0.2.1");
  EXPECT_EQ(servers[0]->udp_questions, 0U);
  EXPECT_EQ(servers[0]->tcp_questions, 2U);
  EXPECT_EQ(servers[0]->tcp_connections, 1U);
  // The server restarts, so the connection is closed.
  servers[0]->stop();
  loops[0]->run_ready();
  servers[0]->start();
  resolver->clear_cache();
  EXPECT_EQ(text_of("www.example.org"), "2001:db8::1 192.0.2.1");
}

TEST_F(DnsResolving, does_not_repeat_queries_over_tcp) {
  configure("options use-vc\n");
  both([](test::NameServer& server) {
    server.set_change([](const dns::Message&, dns::Message&, bool) { return false; });
  });
  EXPECT_FALSE(resolve("www.example.org", AddressFamily::v4));
  // Each connection was silent for at least two seconds before the query was sent on another one.
  for (const auto& entry : servers) {
    EXPECT_EQ(entry->tcp_questions, entry->tcp_connections);
    EXPECT_GE(entry->tcp_connections, 2U);
    EXPECT_LE(entry->tcp_connections, 4U);
  }
}

TEST_F(DnsResolving, leaves_a_connection_that_does_not_answer_any_more) {
  configure("options use-vc\n");
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
  // A server that lost its memory, and whose packets do not say so.
  servers[1]->stop();
  servers[0]->set_change(
      [this](const dns::Message&, dns::Message&, bool) { return servers[0]->tcp_connections > 1; });
  const TimePoint begin = simulation.now();
  EXPECT_EQ(text_of("mail.www.example.org", AddressFamily::v4), "Name or service not known");
  EXPECT_LT(simulation.now() - begin, 4s);
  EXPECT_EQ(servers[0]->tcp_connections, 2U);
}

TEST_F(DnsResolving, fails_over_from_a_dead_server_over_tcp) {
  configure("options use-vc\n");
  servers[0]->stop();
  EXPECT_EQ(text_of("www.example.org"), "2001:db8::1 192.0.2.1");
  servers[0]->start();
  constexpr int count = 200;
  for (int i = 0; i < count; ++i) {
    resolver->clear_cache();
    EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
    pass(100ms);
    if (servers[0]->tcp_questions != 0) break;
  }
  EXPECT_GE(servers[1]->tcp_questions, 30U) << "the dead server was tried too often";
  EXPECT_GE(servers[0]->tcp_questions, 1U) << "nothing noticed that it is back";
}

TEST_F(DnsResolving, waits_for_the_other_server_after_an_error) {
  servers[0]->set_change([](const dns::Message&, dns::Message& response, bool) {
    response.rcode = dns::Rcode::server_failure;
    response.answers.clear();
    return true;
  });
  int lost = 1;
  servers[1]->set_change([&](const dns::Message&, dns::Message&, bool) { return lost-- <= 0; });
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
}

TEST_F(DnsResolving, searches_for_names_with_few_dots) {
  configure("search example.com example.org\noptions ndots:2\n");
  both([](test::NameServer& server) { server.add(a_record("a.b.c", {10, 0, 0, 9})); });
  EXPECT_EQ(text_of("www", AddressFamily::v4), "192.0.2.1");
  std::vector<std::string> asked;
  for (const dns::Message& question : servers[0]->questions)
    asked.push_back(question.questions[0].name.to_string());
  EXPECT_EQ(asked, (std::vector<std::string>{"www.example.com.", "www.example.org."}));
  EXPECT_EQ(text_of("a.b.c", AddressFamily::v4), "10.0.0.9");
  EXPECT_EQ(servers[0]->questions.back().questions[0].name.to_string(), "a.b.c.");
  const auto before = servers[0]->questions.size();
  EXPECT_EQ(resolve("www.", AddressFamily::v4).error(), resolver_error(EAI_NONAME));
  EXPECT_EQ(servers[0]->questions.size(), before + 1);
}

TEST_F(DnsResolving, prefers_the_hosts_file) {
  test::write_file(client, "/etc/hosts",
                   "# comment\n10.1.1.1 www.example.org www # more\n::1 v6.only\n"
                   "10.1.1.2\tother\n10.1.1.3 OTHER\nnonsense x\n10.1.1.4\n");
  EXPECT_EQ(text_of("www.example.org"), "10.1.1.1");
  EXPECT_EQ(text_of("WWW"), "10.1.1.1");
  EXPECT_EQ(text_of("other"), "10.1.1.2 10.1.1.3");
  EXPECT_EQ(questions(), 0U);
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v6), "2001:db8::1");
}

TEST_F(DnsResolving, obeys_nsswitch_conf) {
  test::write_file(client, "/etc/hosts", "10.1.1.1 www.example.org\n");
  test::write_file(client, "/etc/nsswitch.conf", "passwd: files\nhosts:\tdns files # all\n");
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
  test::write_file(client, "/etc/nsswitch.conf", "hosts: files [NOTFOUND=return] dns\n");
  pass(100ms);
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "10.1.1.1");
  EXPECT_EQ(resolve("no.example.org", AddressFamily::v4).error(), resolver_error(EAI_NONAME));
  EXPECT_EQ(questions(), 1U);
  // Other sources are those of the system, which in a simulation knows the hosts.
  test::write_file(client, "/etc/nsswitch.conf",
                   "hosts: files mdns4_minimal [NOTFOUND=return] dns resolve\n");
  pass(100ms);
  EXPECT_EQ(text_of("ns0", AddressFamily::v4), hosts[0]->ip());
  EXPECT_EQ(resolver->stats().fallbacks, 1U);
}

TEST_F(DnsResolving, keeps_the_sources_of_its_start) {
  test::write_file(client, "/etc/hosts", "10.1.1.1 own.example.org other.example.org\n");
  test::write_file(client, "/etc/nsswitch.conf", "hosts: mdns4_minimal dns files\n");
  std::optional<Found> found;
  spawn(*loop, [](dns::Resolver& from, std::optional<Found>& into) -> Task<> {
    into = co_await from.resolve("own.example.org", 80);
  }(make({.reload_interval = 0ns}), found));
  // Before the answer arrives, another lookup reads a shorter list.
  test::write_file(client, "/etc/nsswitch.conf", "hosts: files\n");
  TaskScope scope(*loop);
  scope.spawn(
      [&]() -> Task<> { static_cast<void>(co_await resolver->resolve("other.example.org", 80)); });
  simulation.run_for(1s);
  EXPECT_TRUE(scope.empty());
  ASSERT_TRUE(found && *found) << found->error().message();
  EXPECT_EQ(found->value().front().address(), "10.1.1.1");
}

TEST_F(DnsResolving, uses_changed_files_within_a_tenth_of_a_second) {
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
  const auto before = servers[1]->udp_questions;
  test::write_file(client, "/etc/resolv.conf", "nameserver " + hosts[1]->ip() + "\n");
  test::write_file(client, "/etc/hosts", "10.9.9.9 new\n");
  pass(100ms);
  EXPECT_EQ(text_of("new", AddressFamily::v4), "10.9.9.9");
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
  EXPECT_EQ(servers[1]->udp_questions, before + 1) << "the cache of other servers was used";
}

TEST_F(DnsResolving, finishes_queries_to_servers_that_were_replaced) {
  const auto late = [this](const dns::Message&, dns::Message&, bool) {
    test::write_file(client, "/etc/resolv.conf", "nameserver " + hosts[1]->ip() + "\n");
    return true;
  };
  servers[0]->set_change(late);
  dns::Resolver& shared = the_resolver();
  TaskScope scope(*loop);
  int ended = 0;
  for (int i = 0; i < 20; ++i) {
    scope.spawn([&, i]() -> Task<> {
      static_cast<void>(co_await sleep_for(i * 20ms));
      const auto found = co_await shared.resolve("n" + std::to_string(i), 80, AddressFamily::v4);
      if (found.error() == resolver_error(EAI_NONAME)) ++ended;
    });
  }
  simulation.run(10s);
  EXPECT_EQ(ended, 20);
  EXPECT_GE(servers[1]->udp_questions, 15U);
}

TEST_F(DnsResolving, queries_without_edns_if_the_server_does_not_support_it) {
  both([](test::NameServer& server) {
    server.set_change([](const dns::Message& question, dns::Message& response, bool) {
      if (!question.edns) return true;
      response.rcode = dns::Rcode::format_error;
      response.edns.reset();
      response.answers.clear();
      return true;
    });
  });
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
  EXPECT_EQ(servers[0]->udp_questions, 2U);
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v6), "2001:db8::1");
  EXPECT_EQ(servers[0]->udp_questions, 3U);
  // After some minutes it may support EDNS.
  pass(20min);
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
  EXPECT_EQ(servers[0]->udp_questions, 5U);
}

TEST_F(DnsResolving, queries_without_edns_although_the_query_was_repeated_with_it) {
  // Later than the retransmission timeout of 400 ms.
  simulation.options().delay_min = simulation.options().delay_max = 300ms;
  servers[0]->set_change([](const dns::Message& question, dns::Message& response, bool) {
    if (!question.edns) return true;
    response.rcode = dns::Rcode::format_error;
    response.edns.reset();
    response.answers.clear();
    return true;
  });
  make({.servers = {test::endpoint_of(*hosts[0])}});
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
  std::size_t with_edns = 0;
  for (const dns::Message& message : servers[0]->questions) with_edns += message.edns ? 1 : 0;
  EXPECT_EQ(with_edns, 2U);
}

TEST_F(DnsResolving, keeps_edns_if_a_server_fails_without_it_too) {
  both([](test::NameServer& server) {
    server.set_change([](const dns::Message& question, dns::Message& response, bool) {
      if (question.questions[0].name != dns_name("bad.example.org")) return true;
      response.rcode = dns::Rcode::format_error;
      response.edns.reset();
      return true;
    });
  });
  EXPECT_EQ(resolve("bad.example.org", AddressFamily::v4).error(), resolver_error(EAI_AGAIN));
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
  EXPECT_TRUE(servers[0]->questions.back().edns);
}

/// An attacker repeats what the server has sent.
TEST_F(DnsResolving, ignores_copies_of_a_response) {
  for (const dns::Rcode code : {dns::Rcode::no_error, dns::Rcode::bad_cookie}) {
    make({.servers = {test::endpoint_of(*hosts[0])}});
    test::NameServer& server = *servers[0];
    server.set_spoofer([&](const dns::Message& question, const Endpoint& from) {
      dns::Message copied = dns::Message::response_to(question);
      copied.rcode = code;
      copied.truncated = code == dns::Rcode::no_error;
      for (int i = 0; i < 50; ++i) server.send(copied.write().value(), from);
    });
    // Connections are accepted, and queries on them are not answered.
    server.set_change([](const dns::Message&, dns::Message&, bool) { return false; });
    server.udp_questions = server.tcp_questions = server.tcp_connections = 0;
    EXPECT_FALSE(resolve("www.example.org", AddressFamily::v4));
    EXPECT_LE(server.udp_questions, 10U);
    EXPECT_GE(server.tcp_questions, 1U);
    EXPECT_EQ(server.tcp_questions, server.tcp_connections) << "repeated on a connection";
    EXPECT_LE(server.tcp_connections, 5U);
    server.set_spoofer(nullptr);
  }
}

TEST_F(DnsResolving, receives_a_limited_number_of_datagrams_in_each_iteration) {
  make({.servers = {test::endpoint_of(*hosts[0])}});
  simulation.options().delay_min = simulation.options().delay_max = 1ms;
  constexpr int forged = 200;
  servers[0]->set_spoofer([&](const dns::Message&, const Endpoint& from) {
    for (int i = 0; i < forged; ++i) servers[0]->send("x", from);
  });
  std::uint64_t last = 0;
  std::uint64_t limit = 0;
  Prepare prepare(*loop, [&] {
    const std::uint64_t now = resolver->stats().rejected;
    limit = std::max(limit, now - std::exchange(last, now));
  });
  prepare.start();
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
  EXPECT_EQ(resolver->stats().rejected, forged);
  EXPECT_LE(limit, 64U);
}

TEST_F(DnsResolving, sends_cookies_and_requires_those_that_a_server_has_sent) {
  bool sends = true;
  std::vector<std::string> received;
  servers[0]->set_change([&](const dns::Message& question, dns::Message& response, bool) {
    const std::string& cookie = question.edns->options.at(0).data;
    received.push_back(cookie);
    if (sends) response.edns->options = {{dns::Option::cookie, cookie.substr(0, 8) + "serverck"}};
    return true;
  });
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v6), "2001:db8::1");
  ASSERT_EQ(received.size(), 2U);
  EXPECT_EQ(received[0].size(), 8U);
  EXPECT_EQ(received[1], received[0] + "serverck");
  // Now it does not send any more: its answers may be forged.
  sends = false;
  resolver->clear_cache();
  const TimePoint begin = simulation.now();
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
  EXPECT_EQ(servers[0]->tcp_questions, 1U);
  EXPECT_EQ(servers[1]->udp_questions, 0U);
  EXPECT_LT(simulation.now() - begin, 100ms);
  EXPECT_EQ(resolver->stats().rejected, 1U);
}

TEST_F(DnsResolving, does_not_keep_the_loop_running_when_it_is_idle) {
  the_resolver();
  configure("options use-vc\n");
  std::optional<Found> found;
  spawn(*loop, [](dns::Resolver& from, std::optional<Found>& into) -> Task<> {
    into = co_await from.resolve("www.example.org", 80);
  }(*resolver, found));
  both([&](test::NameServer&) {});
  simulation.run_for(1s);
  ASSERT_TRUE(found && *found);
  loop->run();  // Returns, because nothing is left to wait for.
}

TEST_F(DnsResolving, returns_typed_records) {
  both([](test::NameServer& server) {
    server.add({.name = dns_name("example.org"),
                .type = dns::Type::mx,
                .ttl = 100,
                .data = dns::Mx{10, dns_name("mail.example.org")}});
  });
  auto mail = run(the_resolver().query("example.org", dns::Type::mx));
  ASSERT_TRUE(mail) << mail.error().message();
  ASSERT_EQ(mail->answers_of<dns::Mx>().size(), 1U);
  EXPECT_EQ(mail->answers_of<dns::Mx>()[0]->exchange, dns_name("mail.example.org"));
  EXPECT_EQ(mail->answers[0].ttl, 100U);
  pass(40s);
  mail = run(resolver->query("example.org", dns::Type::mx));
  EXPECT_EQ(mail->answers[0].ttl, 60U) << "the time in the cache counts";
  EXPECT_EQ(questions(), 1U);
  EXPECT_EQ(run(resolver->query("example.org", dns::Type::txt)).error(), dns::ErrorCode::no_data);
  EXPECT_EQ(run(resolver->query("x.example.org", dns::Type::mx)).error(),
            dns::ErrorCode::no_such_name);
  EXPECT_EQ(run(resolver->query("x..example.org", dns::Type::mx)).error(),
            dns::ErrorCode::bad_name);
}

TEST_F(DnsResolving, trusts_authentic_data_only_with_trust_ad) {
  both([](test::NameServer& server) {
    server.set_change([](const dns::Message&, dns::Message& response, bool) {
      return response.authentic_data = true;
    });
  });
  const auto is_authentic = [this] {
    return run(resolver->query("www.example.org", dns::Type::a)).value().authentic_data;
  };
  the_resolver();
  EXPECT_FALSE(is_authentic());
  EXPECT_FALSE(is_authentic()) << "from the cache";
  configure("options trust-ad\n");
  make();
  EXPECT_TRUE(is_authentic());
  EXPECT_TRUE(is_authentic());
}

TEST_F(DnsResolving, finds_the_addresses_of_a_service) {
  const auto add = [this](std::uint16_t priority, std::uint16_t weight, const char* target) {
    both([&](test::NameServer& server) {
      server.add({.name = dns_name("_ldap._tcp.example.org"),
                  .type = dns::Type::srv,
                  .ttl = 60,
                  .data = dns::Srv{priority, weight, 389, dns_name(target)}});
    });
  };
  add(2, 1, "www.example.org");
  add(1, 0, "missing.example.org");
  add(1, 10, "rarely.example.org");
  add(1, 90, "often.example.org");
  both([](test::NameServer& server) {
    server.add(a_record("often.example.org", {10, 0, 0, 1}));
    server.add(a_record("rarely.example.org", {10, 0, 0, 2}));
    server.add({.name = dns_name("_none._tcp.example.org"),
                .type = dns::Type::srv,
                .data = dns::Srv{0, 0, 0, dns::Name()}});
  });
  int often = 0;
  for (int i = 0; i < 200; ++i) {
    const auto found =
        run(the_resolver().resolve_service("_ldap._tcp.example.org", AddressFamily::v4));
    ASSERT_TRUE(found) << found.error().message();
    ASSERT_EQ(found->size(), 3U);
    EXPECT_EQ(found->back().to_string(), "192.0.2.1:389");
    if (found->front().address() == "10.0.0.1") ++often;
  }
  EXPECT_GT(often, 150);
  EXPECT_LT(often, 200);
  EXPECT_EQ(run(resolver->resolve_service("_none._tcp.example.org")).error(),
            dns::ErrorCode::no_service);
  EXPECT_EQ(run(resolver->resolve_service("_x._tcp.example.org")).error(), dns::ErrorCode::no_data);
}

TEST_F(DnsResolving, finds_the_names_of_addresses) {
  both([](test::NameServer& server) {
    server.add({.name = dns_name("1.2.0.192.in-addr.arpa"),
                .type = dns::Type::ptr,
                .ttl = 60,
                .data = dns::Ptr{dns_name("www.example.org")}});
  });
  test::write_file(client, "/etc/hosts", "10.1.1.1 first second\n");
  using Names = std::vector<std::string>;
  EXPECT_EQ(run(the_resolver().reverse(Endpoint::parse("192.0.2.1", 0).value())).value(),
            Names{"www.example.org"});
  EXPECT_EQ(run(resolver->reverse(Endpoint::parse("10.1.1.1", 0).value())).value(),
            (Names{"first", "second"}));
  EXPECT_EQ(run(resolver->reverse(Endpoint::parse("192.0.2.2", 0).value())).error(),
            dns::ErrorCode::no_such_name);
  EXPECT_EQ(run(resolver->reverse(Endpoint::unix_name("/x").value())).error(),
            system_error(EAFNOSUPPORT));
}

TEST_F(DnsResolving, reports_each_family_when_it_is_known) {
  both([](test::NameServer& server) {
    server.set_change([](const dns::Message& question, dns::Message&, bool) {
      return question.questions[0].type != dns::Type::aaaa;
    });
  });
  std::vector<std::string> reports;
  TimePoint first_at{};
  const auto outcome =
      run(the_resolver().resolve_each("www.example.org", 80, AddressFamily::any,
                                      [&](const std::vector<Endpoint>& found, bool complete) {
                                        if (reports.empty()) first_at = simulation.now();
                                        std::string text = complete ? "complete" : "partial";
                                        for (const Endpoint& endpoint : found)
                                          text += ' ' + endpoint.address();
                                        reports.push_back(text);
                                      }));
  EXPECT_TRUE(outcome);
  EXPECT_EQ(reports, (std::vector<std::string>{"partial 192.0.2.1", "complete 192.0.2.1"}));
  EXPECT_LT(first_at.time_since_epoch(), 3601s);
}

TEST_F(DnsResolving, can_be_cancelled_at_any_time) {
  dns::Resolver& shared = the_resolver();
  both([&](test::NameServer& server) {
    server.set_change([&](const dns::Message&, dns::Message&, bool is_tcp) {
      return is_tcp || simulation.chance(0.7);
    });
  });
  for (int i = 0; i < 1000; ++i) {
    TaskScope scope(*loop);
    bool has_ended = false;
    Error error;
    scope.spawn([&, i]() -> Task<> {
      const auto found = co_await shared.resolve("n" + std::to_string(i / 3) + ".example.org", 80);
      has_ended = true;
      if (!found) error = found.error();
    });
    simulation.run_for(Duration(static_cast<std::int64_t>(simulation.random(2'000'000))));
    if (has_ended) continue;
    if (i % 2 == 0) {
      scope.request_stop();
      simulation.run_for(1ms);
      ASSERT_TRUE(has_ended);
      ASSERT_TRUE(error == system_error(ECANCELED) || error == resolver_error(EAI_NONAME));
    }
    // Otherwise the scope destroys the task.
  }
  simulation.run_for(20s);
  EXPECT_EQ(shared.stats().in_flight, 0U);
}

TEST_F(DnsResolving, cancels_lookups_when_it_is_destroyed) {
  std::optional<Found> found;
  spawn(*loop, [](dns::Resolver& from, std::optional<Found>& into) -> Task<> {
    into = co_await from.resolve("www.example.org", 80);
  }(the_resolver(), found));
  resolver.reset();
  simulation.run_for(1s);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->error(), system_error(ECANCELED));
}

TEST_F(DnsResolving, cancels_a_lookup_of_which_one_family_is_known_when_it_is_destroyed) {
  both([](test::NameServer& server) {
    server.set_change([](const dns::Message& question, dns::Message&, bool) {
      return question.questions[0].type != dns::Type::aaaa;
    });
  });
  std::optional<Found> found;
  spawn(*loop, [](dns::Resolver& from, std::optional<Found>& into) -> Task<> {
    into = co_await from.resolve("www.example.org", 80);
  }(the_resolver(), found));
  simulation.run_for(100ms);
  ASSERT_FALSE(found);
  resolver.reset();
  simulation.run_for(1s);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->error(), system_error(ECANCELED));
}

TEST_F(DnsResolving, cancels_lookups_whose_answer_has_arrived_when_it_is_destroyed) {
  both([](test::NameServer& server) {
    server.add({.name = dns_name("_ldap._tcp.example.org"),
                .type = dns::Type::srv,
                .data = dns::Srv{0, 0, 389, dns_name("www.example.org")}});
  });
  dns::Resolver& shared = the_resolver();
  // The second task has its answer, too, when the first one continues.
  const auto second_error = [&](const auto& look_up) {
    Error error;
    TaskScope scope(*loop);
    scope.spawn([&]() -> Task<> {
      static_cast<void>(co_await look_up());
      resolver.reset();
    });
    scope.spawn([&]() -> Task<> {
      const auto found = co_await look_up();
      if (!found) error = found.error();
    });
    simulation.run_for(1s);
    EXPECT_TRUE(scope.empty());
    return error;
  };
  EXPECT_EQ(second_error([&] { return shared.resolve("www.example.org", 80); }),
            system_error(ECANCELED));
  dns::Resolver& next = make();
  EXPECT_EQ(second_error([&] { return next.query("_ldap._tcp.example.org", dns::Type::srv); }),
            system_error(ECANCELED));
  dns::Resolver& last = make();
  EXPECT_EQ(second_error([&] { return last.resolve_service("_ldap._tcp.example.org"); }),
            system_error(ECANCELED));
}

TEST_F(DnsResolving, may_be_destroyed_when_it_reports_addresses) {
  both([](test::NameServer& server) {
    server.set_change([](const dns::Message& question, dns::Message&, bool) {
      return question.questions[0].type != dns::Type::aaaa;
    });
  });
  dns::Resolver& destroyed = the_resolver();
  std::optional<Result<>> outcome;
  TaskScope scope(*loop);
  scope.spawn([&]() -> Task<> {
    outcome = co_await destroyed.resolve_each(
        "www.example.org", 80, AddressFamily::any,
        [&](const std::vector<Endpoint>&, bool) { resolver.reset(); });
  });
  simulation.run_for(1s);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->error(), system_error(ECANCELED));
}

TEST_F(DnsResolving, closes_sockets_that_are_idle) {
  EXPECT_TRUE(resolve("www.example.org"));
  EXPECT_GT(client.descriptors(), 0U);
  spawn(*loop, [](sim::Simulation& in) -> Task<> {
    static_cast<void>(co_await sleep_for(30s));
    in.stop();
  }(simulation));
  simulation.run(1h);
  EXPECT_EQ(client.descriptors(), 0U);
}

TEST_F(DnsResolving, does_not_wake_the_loop_when_it_is_idle) {
  test::write_file(client, "/etc/hosts", "10.1.1.1 local\n10.1.1.2 local\n");
  EXPECT_TRUE(resolve("www.example.org"));
  EXPECT_EQ(resolve("local")->size(), 2U);
  pass(30s);
  const std::uint64_t before = loop->stats().iterations;
  pass(50min);
  // The end of the sleep, and its task.
  EXPECT_LE(loop->stats().iterations - before, 4U);
  // The sockets that only order addresses are closed, too.
  EXPECT_EQ(resolve("local")->size(), 2U);
  pass(30s);
  EXPECT_EQ(client.descriptors(), 0U);
}

TEST_F(DnsResolving, has_one_resolver_for_each_loop) {
  dns::Resolver& resolver = dns::Resolver::of(*loop);
  EXPECT_EQ(&dns::Resolver::of(*loop), &resolver);
  EXPECT_EQ(run(resolver.resolve("www.example.org", 80, AddressFamily::v4))->front().address(),
            "192.0.2.1");
}

TEST_F(DnsResolving, uses_the_names_of_the_simulation_without_resolv_conf) {
  client.unlink("/etc/resolv.conf");
  EXPECT_EQ(text_of("ns0", AddressFamily::v4), hosts[0]->ip());
}

TEST_F(DnsResolving, rotates_servers_with_option_rotate) {
  configure("options rotate\n");
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(resolve("n" + std::to_string(i), AddressFamily::v4));
  EXPECT_EQ(servers[0]->udp_questions, 10U);
  EXPECT_EQ(servers[1]->udp_questions, 10U);
}

TEST_F(DnsResolving, repeats_the_random_case_of_a_question) {
  make({.random_case = true});
  EXPECT_EQ(text_of("www.example.org", AddressFamily::v4), "192.0.2.1");
  EXPECT_NE(servers[0]->questions[0].questions[0].name.wire(), dns_name("www.example.org").wire());
}

}  // namespace
}  // namespace tambour::resolver_test
