// Requests of the resolver: failover, cancelling, hosts files, lifetimes, threads, and what users
// of libevent have reported. Where it differs, differences.md says so.

#include <dirent.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <random>
#include <thread>

#include <event2/thread.h>

#include "evdns/nameserver.h"

namespace {

using DnsFailover = Dns;
using DnsCancel = Dns;
using DnsHosts = Dns;
using DnsLifetimes = Dns;

std::string no_response(const std::string& /*query*/) { return {}; }

/// A file of its own, which is removed.
class File {
 public:
  explicit File(std::string_view text) {
    const int fd = mkstemp(name_);
    EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(fd);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { unlink(name_); }
  [[nodiscard]] const char* name() const { return name_; }

 private:
  char name_[24] = "/tmp/evdns_test_XXXXXX";
};

int threads_of_process() {
  DIR* const directory = opendir("/proc/self/task");
  int count = 0;
  while (const dirent* const entry = readdir(directory)) count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(directory);
  return count;
}

TEST_F(DnsFailover, a_rejected_packet_moves_the_requests_at_once) {
  Nameserver dead(base_, &no_response);
  Nameserver alive(base_, &respond_with_address);
  dead.add_to(dns_);
  alive.add_to(dns_);
  dead.stop();
  // Nothing may depend on the timeout.
  set("timeout", "600");
  std::vector<Result> results(10);
  for (Result& entry : results) resolve("name.test", entry);
  for (Result& result : results) {
    wait_for(result);
    EXPECT_EQ(result.error, DNS_ERR_NONE);
  }
}

TEST_F(DnsFailover, a_failed_server_is_not_asked) {
  Nameserver silent(base_, &no_response);
  Nameserver alive(base_, &respond_with_address);
  set("timeout", "0.05");
  set("max-timeouts", "1");
  set("initial-probe-timeout", "600");
  silent.add_to(dns_);
  std::vector<Result> results(2);
  for (Result& entry : results) resolve("name.test", entry);
  // On a busy machine, the server that answers must not be marked as failed, too.
  set("timeout", "600");
  alive.add_to(dns_);
  for (Result& result : results) {
    wait_for(result);
    EXPECT_EQ(result.error, DNS_ERR_NONE);
  }
  settle();
  const std::size_t asked = silent.queries.size();
  EXPECT_LE(asked, 4U);
  for (int i = 0; i < 20; ++i) {
    Result result;
    resolve("name.test", result);
    wait_for(result);
  }
  EXPECT_EQ(silent.queries.size(), asked);
}

// Issue 1408.
TEST_F(DnsFailover, getaddrinfo_waits_for_the_second_server) {
  Nameserver silent(base_, &no_response);
  Nameserver alive(base_, [](const std::string& query) {
    if (type_of(query) == 1) return respond_with_address(query);
    return respond(query, "\x81\x80", bytes("\0\0\0\0\0\0"), "");
  });
  set("timeout", "0.3");
  set("attempts", "100");  // On a busy machine, queries to the second one may time out.
  set("getaddrinfo-allow-skew", "0.01");
  silent.add_to(dns_);
  alive.add_to(dns_);
  // Whichever server is asked for which type.
  for (int i = 0; i < 2; ++i) {
    AddressResult result;
    evdns_getaddrinfo(dns_, "name.test", "80", nullptr, &AddressResult::on_addresses, &result);
    wait_for([&] { return result.calls != 0; });
    EXPECT_EQ(result.error, 0);
    EXPECT_EQ(result.families, (std::vector<int>{AF_INET, AF_INET}));
    Result other;
    resolve("name.test", other);
    wait_for(other);
  }
}

struct Canceller {
  evdns_base* dns;
  evdns_request* other = nullptr;
  int calls = 0;
  static void on_result(int /*result*/, char /*type*/, int /*count*/, int /*ttl*/,
                        void* /*addresses*/, void* argument) {
    auto& self = *static_cast<Canceller*>(argument);
    ++self.calls;
    evdns_cancel_request(self.dns, self.other);
  }
};

// Issue 1064.
TEST_F(DnsCancel, after_the_answer_has_arrived) {
  Nameserver server(base_, &no_response);
  server.add_to(dns_);
  Canceller first{.dns = dns_};
  Result second;
  evdns_base_resolve_ipv4(dns_, "first.test", DNS_QUERY_NO_SEARCH, &Canceller::on_result, &first);
  first.other = resolve("second.test", second);
  wait_for([&] { return server.queries.size() == 2; });
  for (const std::string& query : server.queries) {
    const std::string packet = respond_with_address(query);
    sendto(server.fd(), packet.data(), packet.size(), 0,
           reinterpret_cast<const sockaddr*>(&server.client), sizeof server.client);
  }
  wait_for(second);
  EXPECT_EQ(first.calls, 1);
  EXPECT_EQ(second.error, DNS_ERR_CANCEL);
  settle();
  EXPECT_EQ(second.calls, 1);
}

struct RandomLookup {
  evdns_request* request = nullptr;
  evdns_getaddrinfo_request* lookup = nullptr;
  bool is_cancelled = false;
  int calls = 0;
  int wrong = 0;

  void note(bool says_cancelled) {
    ++calls;
    request = nullptr;
    lookup = nullptr;
    if (says_cancelled != is_cancelled) ++wrong;
  }
  static void on_result(int result, char /*type*/, int /*count*/, int /*ttl*/, void* /*addresses*/,
                        void* argument) {
    static_cast<RandomLookup*>(argument)->note(result == DNS_ERR_CANCEL);
  }
  static void on_addresses(int result, evutil_addrinfo* addresses, void* argument) {
    static_cast<RandomLookup*>(argument)->note(result == EVUTIL_EAI_CANCEL);
    if (addresses != nullptr) evutil_freeaddrinfo(addresses);
  }
};

TEST_F(DnsCancel, a_thousand_lookups_at_random_points) {
  std::mt19937 random(7);
  Nameserver server(base_, [&](const std::string& query) {
    if (random() % 4 == 0) return std::string();
    if (random() % 4 == 0) return respond(query, "\x81\x83", bytes("\0\0\0\0\0\0"), "");
    if (random() % 8 == 0) return respond(query, "\x83\x80", bytes("\0\0\0\0\0\0"), "");
    return respond_with_address(query);
  });
  server.add_to(dns_);
  evdns_base_search_add(dns_, "search.test");
  set("timeout", "0.01");
  set("max-timeouts", "255");
  set("getaddrinfo-allow-skew", "0.001");
  std::deque<RandomLookup> lookups;
  for (int cancelled = 0; cancelled < 1000;) {
    RandomLookup& added = lookups.emplace_back();
    if (lookups.size() % 2 == 0) {
      added.request = evdns_base_resolve_ipv4(dns_, "name", 0, &RandomLookup::on_result, &added);
    } else {
      added.lookup =
          evdns_getaddrinfo(dns_, "name", "80", nullptr, &RandomLookup::on_addresses, &added);
    }
    for (unsigned steps = random() % 3; steps != 0; --steps)
      event_base_loop(base_, EVLOOP_NONBLOCK | EVLOOP_ONCE);
    // One of the last that are not complete.
    for (std::size_t i = lookups.size(); i-- > lookups.size() / 2;) {
      RandomLookup& chosen = lookups[i];
      if (chosen.calls != 0 || chosen.is_cancelled || random() % 3 != 0) continue;
      chosen.is_cancelled = true;
      ++cancelled;
      if (chosen.request != nullptr) evdns_cancel_request(dns_, chosen.request);
      if (chosen.lookup != nullptr) evdns_getaddrinfo_cancel(chosen.lookup);
      break;
    }
  }
  wait_for([&] {
    return std::ranges::all_of(
        lookups, [](const RandomLookup& random_lookup) { return random_lookup.calls != 0; });
  });
  settle();
  for (const RandomLookup& lookup : lookups) {
    EXPECT_EQ(lookup.calls, 1);
    EXPECT_EQ(lookup.wrong, 0);
  }
  EXPECT_EQ(threads_of_process(), 1);
}

// Issue 1765.
TEST_F(DnsHosts, are_used_by_all_functions) {
  const File file(
      "1.2.3.4 Known.Test\n1.2.3.5 known.test\n2001:db8::1 known.test\n1.1.1.1 only4\n");
  ASSERT_EQ(evdns_base_load_hosts(dns_, file.name()), 0);
  Result v4;
  resolve("known.test", v4);
  wait_for(v4);
  EXPECT_EQ(v4.data, "\1\2\3\4\1\2\3\5");
  Result v6;
  evdns_base_resolve_ipv6(dns_, "known.test.", 0, &Result::on_result, &v6);
  wait_for(v6);
  EXPECT_EQ(v6.count, 1);
  EXPECT_EQ(v6.data[1], 1);
  Result cancelled;
  evdns_cancel_request(dns_, resolve("known.test", cancelled));
  wait_for(cancelled);
  EXPECT_EQ(cancelled.error, DNS_ERR_CANCEL);

  AddressResult all;
  evdns_getaddrinfo(dns_, "known.test", "80", nullptr, &AddressResult::on_addresses, &all);
  EXPECT_EQ(all.families,
            (std::vector<int>{AF_INET, AF_INET, AF_INET, AF_INET, AF_INET6, AF_INET6}));
  EXPECT_EQ(all.ports, std::vector<int>(6, 80));
  AddressResult other;
  evutil_addrinfo hints{};
  hints.ai_family = AF_INET6;
  evdns_getaddrinfo(dns_, "only4", "80", &hints, &AddressResult::on_addresses, &other);
  EXPECT_EQ(other.error, EVUTIL_EAI_ADDRFAMILY);
}

TEST_F(DnsHosts, may_be_large_and_damaged) {
  std::string text;
  for (int i = 0; i < 100'000; ++i)
    text += std::to_string(i % 256) + ".0.0.1 host" + std::to_string(i) + "\n";
  const File large(text);
  EXPECT_EQ(evdns_base_load_hosts(dns_, large.name()), 0);
  std::mt19937 random(3);
  for (char& entry : text) entry = static_cast<char>(random());
  const File garbage(text);
  EXPECT_EQ(evdns_base_load_hosts(dns_, garbage.name()), 0);
  evdns_base_resolv_conf_parse(dns_, DNS_OPTION_SEARCH | DNS_OPTION_MISC, garbage.name());
  Result result;
  resolve("host99999", result);
  wait_for(result);
  EXPECT_EQ(result.count, 1);
}

TEST_F(DnsLifetimes, names_that_are_not_valid_make_no_request) {
  Result result;
  const std::string dotted = std::string(200, '.');
  std::string long_name;
  for (int i = 0; i < 130; ++i) long_name += "a.";
  for (const std::string& text :
       {std::string("a..b"), std::string(".a"), std::string(".."), dotted, long_name,
        std::string(64, 'a'), std::string(256, 'a'), std::string(100'000, 'a')}) {
    EXPECT_EQ(resolve(text.c_str(), result), nullptr) << text;
    evdns_base_search_add(dns_, text.c_str());
    evdns_base_search_add(dns_, "test");
    EXPECT_EQ(evdns_base_resolve_ipv4(dns_, "", 0, &Result::on_result, &result), nullptr);
  }
  settle();
  EXPECT_EQ(result.calls, 0);
}

// Issue 64: nameservers are replaced while requests wait and are in flight.
TEST_F(DnsLifetimes, nameservers_may_be_replaced_at_any_time) {
  Nameserver server(base_, &respond_with_address);
  set("max-inflight", "2");
  std::vector<Result> results(50);
  for (std::size_t i = 0; i < results.size(); ++i) {
    resolve("name.test", results[i]);
    if (i % 3 == 0) event_base_loop(base_, EVLOOP_NONBLOCK);
    if (i % 5 == 0) evdns_base_clear_nameservers_and_suspend(dns_);
    if (i % 5 == 0) server.add_to(dns_);
    if (i % 7 == 0) evdns_base_resume(dns_);
  }
  evdns_base_resume(dns_);
  for (Result& result : results) {
    wait_for(result);
    EXPECT_EQ(result.error, DNS_ERR_NONE);
  }
}

// Issues 416, 1278: the base is freed with requests that wait, are in flight, and are complete.
TEST_F(DnsLifetimes, a_base_may_be_freed_at_any_time) {
  for (int fail = 0; fail < 2; ++fail) {
    for (int steps = 0; steps < 8; ++steps) {
      Nameserver server(base_, &respond_with_address);
      dns_ = dns_ != nullptr ? dns_ : evdns_base_new(base_, 0);
      set("max-inflight", "3");
      server.add_to(dns_);
      std::vector<Result> results(10);
      std::vector<AddressResult> lookups(10);
      for (Result& current_result : results) resolve("name.test", current_result);
      for (AddressResult& current_lookup : lookups)
        evdns_getaddrinfo(dns_, "name.test", "80", nullptr, &AddressResult::on_addresses,
                          &current_lookup);
      for (int i = 0; i < steps; ++i) event_base_loop(base_, EVLOOP_ONCE | EVLOOP_NONBLOCK);
      int complete = 0;
      for (const Result& entry : results) complete += entry.calls;
      free_dns(fail);
      settle();
      int calls = 0;
      for (const Result& result : results) calls += result.calls;
      EXPECT_EQ(calls, fail != 0 ? 10 : complete);
      for (const AddressResult& address_result : lookups) EXPECT_LE(address_result.calls, 1);
      if (fail == 0) continue;
      for (const AddressResult& lookup : lookups) EXPECT_EQ(lookup.calls, 1);
    }
  }
}

// Issue 942: nothing runs any more, and nothing leaks.
TEST_F(DnsLifetimes, a_base_may_be_freed_without_running_the_loop) {
  Nameserver server(base_, &respond_with_address);
  server.add_to(dns_);
  Result result;
  AddressResult found;
  resolve("name.test", result);
  evdns_getaddrinfo(dns_, "name.test", nullptr, nullptr, &AddressResult::on_addresses, &found);
  free_dns(0);
}

struct Freer {
  evdns_base** dns;
  int fail_requests;
  static void on_result(int, char, int, int, void*, void* argument) {
    auto& self = *static_cast<Freer*>(argument);
    if (*self.dns != nullptr)
      evdns_base_free(std::exchange(*self.dns, nullptr), self.fail_requests);
  }
};

TEST_F(DnsLifetimes, a_callback_may_free_the_base) {
  for (int fail = 0; fail < 2; ++fail) {
    Nameserver server(base_, &respond_with_address);
    dns_ = dns_ != nullptr ? dns_ : evdns_base_new(base_, 0);
    server.add_to(dns_);
    Freer freer{&dns_, fail};
    Result other;
    evdns_base_resolve_ipv4(dns_, "a.test", 0, &Freer::on_result, &freer);
    resolve("b.test", other);
    wait_for([&] { return dns_ == nullptr; });
    settle();
    EXPECT_EQ(other.calls, fail);
  }
}

// Issues 331, 602, 1506: probes end in every way.
TEST_F(DnsLifetimes, of_probes) {
  for (int step = 0; step < 12; ++step) {
    bool answers = false;
    Nameserver server(base_, [&](const std::string& query) {
      return answers ? respond_with_address(query) : std::string();
    });
    server.add_to(dns_);
    set("timeout", "0.02");
    set("attempts", "1");
    set("initial-probe-timeout", "0.001");
    Result result;
    resolve("name.test", result);
    wait_for(result);
    EXPECT_EQ(result.error, DNS_ERR_TIMEOUT);
    wait_for([&] { return server.queries.size() == 2; });
    answers = step % 2 == 0;
    const std::string packet = respond_with_address(server.queries.back());
    if (step % 3 != 0)
      sendto(server.fd(), packet.data(), packet.size(), 0,
             reinterpret_cast<const sockaddr*>(&server.client), sizeof server.client);
    for (int i = 0; i < step / 2; ++i) event_base_loop(base_, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    evdns_base_clear_nameservers_and_suspend(dns_);
    settle();
  }
}

TEST_F(DnsLifetimes, an_inactive_base_lets_the_loop_end) {
  free_dns(0);
  dns_ =
      evdns_base_new(base_, EVDNS_BASE_DISABLE_WHEN_INACTIVE | EVDNS_BASE_INITIALIZE_NAMESERVERS);
  if (dns_ == nullptr) GTEST_SKIP() << "/etc/resolv.conf has no nameserver";
  EXPECT_EQ(event_base_dispatch(base_), 1);
}

TEST_F(DnsLifetimes, many_requests_wait_for_a_few) {
  Nameserver server(base_, &respond_with_address);
  server.add_to(dns_);
  set("max-inflight", "4");
  std::vector<Result> results(2000);
  for (Result& entry : results) resolve("name.test", entry);
  for (Result& result : results) wait_for(result);
  EXPECT_EQ(server.queries.size(), 2000U);
}

/// A lookup that its thread cancels unless the callback has been invoked.
struct SharedLookup {
  std::mutex mutex;
  bool is_complete = false;
  std::atomic<int>* calls = nullptr;

  void complete() {
    const std::scoped_lock lock(mutex);
    is_complete = true;
    ++*calls;
  }
  static void on_result(int, char, int, int, void*, void* argument) {
    static_cast<SharedLookup*>(argument)->complete();
  }
  static void on_addresses(int, evutil_addrinfo* addresses, void* argument) {
    if (addresses != nullptr) evutil_freeaddrinfo(addresses);
    static_cast<SharedLookup*>(argument)->complete();
  }
};

void look_up_and_cancel(evdns_base* dns, std::deque<SharedLookup>& lookups) {
  std::size_t i = 0;
  for (SharedLookup& shared_lookup : lookups) {
    evdns_request* request = nullptr;
    evdns_getaddrinfo_request* lookup = nullptr;
    if (i % 2 == 0) {
      request =
          evdns_base_resolve_ipv4(dns, "name.test", 0, &SharedLookup::on_result, &shared_lookup);
    } else {
      lookup = evdns_getaddrinfo(dns, "name.test", "80", nullptr, &SharedLookup::on_addresses,
                                 &shared_lookup);
    }
    if (i++ % 3 != 0) continue;
    const std::scoped_lock lock(shared_lookup.mutex);
    if (shared_lookup.is_complete) continue;
    if (request != nullptr) evdns_cancel_request(dns, request);
    if (lookup != nullptr) evdns_getaddrinfo_cancel(lookup);
  }
}

TEST(DnsThreads, make_and_cancel_requests) {
  ASSERT_EQ(evthread_use_pthreads(), 0);
  event_base* const base = event_base_new();
  evdns_base* const dns = evdns_base_new(base, 0);
  {
    Nameserver server(base, &respond_with_address);
    server.add_to(dns);
    evdns_base_set_option(dns, "timeout", "0.5");
    constexpr int count = 500;
    std::atomic<int> calls = 0;
    std::deque<SharedLookup> lookups[2];
    std::vector<std::thread> threads;
    for (auto& lookup : lookups) {
      for (int i = 0; i < count; ++i) lookup.emplace_back().calls = &calls;
      threads.emplace_back([&] { look_up_and_cancel(dns, lookup); });
    }
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        evdns_base_clear_nameservers_and_suspend(dns);
        server.add_to(dns);
        evdns_base_resume(dns);
      }
    });
    while (calls < 2 * count) ASSERT_EQ(event_base_loop(base, EVLOOP_ONCE), 0);
    for (std::thread& worker : threads) worker.join();
    // What a thread cancelled last may be on its way.
    event_base_loop(base, EVLOOP_NONBLOCK);
  }
  evdns_base_free(dns, 0);
  event_base_free(base);
}

}  // namespace
