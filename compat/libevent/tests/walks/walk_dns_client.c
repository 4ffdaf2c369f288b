/* Requests: what they return, how they are repeated, searched for, cancelled and suspended. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event_compat.h>

#include "walk_dns.h"

static struct evdns_request* ask(struct world* world, int type, const char* name, int flags) {
  struct evdns_request* made =
      type == DNS_IPv4_A ? evdns_base_resolve_ipv4(world->dns, name, flags, on_result, (void*)name)
                         : evdns_base_resolve_ipv6(world->dns, name, flags, on_result, (void*)name);
  if (made == NULL) say("    %.20s: no request", name);
  return made;
}

static void ask_and_wait(struct world* world, int type, const char* name, int flags) {
  results = 0;
  if (ask(world, type, name, flags) != NULL) wait_for(world, 1);
}

static void answers(void) {
  static const char* const names[] = {"one.test",     "many.test",   "alias.test",
                                      "nodata.test",  "nx.test",     "soa.test",
                                      "formerr.test", "notimp.test", "refused.test",
                                      "big.test",     "other.test",  "One.MIXED.test."};
  struct world world;
  struct in_addr four;
  struct in6_addr six;
  size_t i;
  make_world(&world, 0);
  for (i = 0; i < sizeof names / sizeof *names; ++i) {
    ask_and_wait(&world, DNS_IPv4_A, names[i], DNS_QUERY_NO_SEARCH);
    ask_and_wait(&world, DNS_IPv6_AAAA, names[i], 0);
  }
  results = 0;
  inet_pton(AF_INET, "192.0.2.77", &four);
  inet_pton(AF_INET6, "2001:db8::1:f00d", &six);
  SAY(evdns_base_resolve_reverse(world.dns, &four, 0, on_result, "v4") != NULL);
  wait_for(&world, 1);
  SAY(evdns_base_resolve_reverse_ipv6(world.dns, &six, 0, on_result, "v6") != NULL);
  wait_for(&world, 2);
  free_world(&world);
}

static void names(void) {
  char label[70], name[300];
  struct world world;
  int i;
  make_world(&world, 0);
  world.quiet = 1;
  memset(label, 'a', sizeof label);
  label[63] = '\0';
  ask_and_wait(&world, DNS_IPv4_A, label, 0);
  label[63] = 'a';
  label[64] = '\0';
  ask_and_wait(&world, DNS_IPv4_A, label, 0);
  /* 253 and 256 bytes. */
  memset(name, 0, sizeof name);
  for (i = 0; i < 63; ++i) strcat(name, "abc.");
  strcat(name, "d");
  ask_and_wait(&world, DNS_IPv6_AAAA, name, 0);
  strcat(name, "efg");
  ask_and_wait(&world, DNS_IPv6_AAAA, name, 0);
  ask_and_wait(&world, DNS_IPv4_A, "", 0);
  ask_and_wait(&world, DNS_IPv4_A, "one.\xc3\xa9.test", 0);
  for (i = 0; i < 80; ++i)
    if (i < 8 || i > 60) say("  error %d: %s", i, evdns_err_to_string(i));
  free_world(&world);
}

static void search(void) {
  static const char* const asked[] = {"one",      "one.a",     "nx",         "nx.a.b",
                                      "nodata.x", "one.test.", "refused.zz", "other"};
  struct world world;
  size_t i;
  int ndots;
  make_world(&world, 0);
  world.quiet = 0;
  evdns_base_search_add(world.dns, "first.test");
  evdns_base_search_add(world.dns, ".second.test");
  evdns_base_search_add(world.dns, "third.test");
  for (ndots = 0; ndots < 3; ++ndots) {
    say("  ndots %d", ndots);
    evdns_base_search_ndots_set(world.dns, ndots);
    for (i = 0; i < sizeof asked / sizeof *asked; ++i)
      ask_and_wait(&world, i % 2 ? DNS_IPv4_A : DNS_IPv6_AAAA, asked[i], 0);
  }
  ask_and_wait(&world, DNS_IPv4_A, "nx", DNS_QUERY_NO_SEARCH);
  evdns_base_search_clear(world.dns);
  ask_and_wait(&world, DNS_IPv4_A, "nx", 0);
  evdns_base_search_add(world.dns, "again.test");
  ask_and_wait(&world, DNS_IPv4_A, "", 0);
  ask_and_wait(&world, DNS_IPv4_A, "one", 0);
  free_world(&world);
}

static void on_log(int is_warning, const char* message) {
  /* Others are for debugging; the port differs. */
  if (strncmp(message, "All", 3) == 0) say("    log %d: %s", is_warning, message);
  if (strstr(message, "has failed:") != NULL)
    say("    log %d: %s", is_warning, strstr(message, "has failed:"));
  if (strstr(message, "is back up") != NULL) say("    log %d: a server is back up", is_warning);
}

static void timeouts(void) {
  struct world world;
  evdns_set_log_fn(on_log);
  make_world(&world, 0);
  evdns_base_set_option(world.dns, "timeout", "0.3");
  evdns_base_set_option(world.dns, "initial-probe-timeout", "0.05");
  ask_and_wait(&world, DNS_IPv4_A, "drop.test", 0);
  /* A query that is answered must not be repeated, even on a busy machine. */
  evdns_base_set_option(world.dns, "timeout", "600");
  say("  the probe");
  evdns_base_set_option(world.dns, "initial-probe-timeout", "60");
  for (world.asked = 0; world.asked == 0;) event_base_loop(world.base, EVLOOP_ONCE);
  settle(&world);
  ask_and_wait(&world, DNS_IPv4_A, "one.test", 0);
  evdns_base_set_option(world.dns, "timeout", "0.3");
  world.drop = 2;
  world.asked = results = 0;
  ask(&world, DNS_IPv4_A, "one.test", 0);
  while (world.asked < 2) event_base_loop(world.base, EVLOOP_ONCE);
  evdns_base_set_option(world.dns, "timeout", "600");
  wait_for(&world, 1);
  evdns_base_set_option(world.dns, "timeout", "0.3");
  evdns_base_set_option(world.dns, "attempts", "1");
  world.drop = 1;
  ask_and_wait(&world, DNS_IPv6_AAAA, "one.test", 0);
  evdns_base_set_option(world.dns, "attempts", "2");
  evdns_base_search_add(world.dns, "test");
  say("  a search");
  ask_and_wait(&world, DNS_IPv6_AAAA, "drop", 0);
  evdns_base_set_option(world.dns, "timeout", "600");
  ask_and_wait(&world, DNS_IPv6_AAAA, "servfail", 0);
  free_world(&world);
}

static void cancelling(void) {
  struct world world;
  struct evdns_request *first, *second;
  int i;
  make_world(&world, 0);
  say("  at once");
  first = ask(&world, DNS_IPv4_A, "one.test", 0);
  evdns_cancel_request(world.dns, first);
  say("  (cancelled)");
  wait_for(&world, 1);
  settle(&world);
  say("  when the server has it");
  results = 0;
  world.cancelled = ask(&world, DNS_IPv4_A, "one.test", 0);
  wait_for(&world, 1);
  settle(&world);
  say("  while it waits for another");
  evdns_base_set_option(world.dns, "max-inflight", "1");
  results = 0;
  first = ask(&world, DNS_IPv4_A, "one.a.test", 0);
  second = ask(&world, DNS_IPv4_A, "one.b.test", 0);
  evdns_cancel_request(NULL, second);
  wait_for(&world, 2);
  settle(&world);
  say("  without a nameserver");
  results = 0;
  SAY(evdns_base_clear_nameservers_and_suspend(world.dns));
  first = ask(&world, DNS_IPv6_AAAA, "one.test", 0);
  evdns_cancel_request(NULL, first);
  wait_for(&world, 1);
  say("  in a search");
  free_world(&world);
  make_world(&world, 0);
  for (i = 0; i < 3; ++i) evdns_base_search_add(world.dns, "nx.test");
  results = 0;
  world.cancelled = ask(&world, DNS_IPv4_A, "nx", 0);
  wait_for(&world, 1);
  settle(&world);
  free_world(&world);
}

static void in_flight(void) {
  static const char* const asked[] = {"one.a.test", "one.b.test", "nx.c.test", "one.d.test"};
  struct world world;
  size_t i;
  make_world(&world, 0);
  SAY(evdns_base_set_option(world.dns, "max-inflight", "1"));
  for (i = 0; i < 4; ++i) ask(&world, DNS_IPv4_A, asked[i], 0);
  wait_for(&world, 4);
  SAY(evdns_base_set_option(world.dns, "max-inflight:", "3"));
  results = 0;
  for (i = 0; i < 4; ++i) ask(&world, DNS_IPv4_A, asked[i], 0);
  wait_for(&world, 4);
  settle(&world);
  free_world(&world);
}

static void freeing(void) {
  struct world world;
  int fail;
  for (fail = 0; fail < 2; ++fail) {
    say("  fail_requests %d", fail);
    make_world(&world, 0);
    evdns_base_set_option(world.dns, "max-inflight", "1");
    ask(&world, DNS_IPv4_A, "drop.test", 0);
    ask(&world, DNS_IPv6_AAAA, "one.test", 0);
    settle(&world);
    evdns_base_free(world.dns, fail);
    world.dns = NULL;
    say("  (freed)");
    settle(&world);
    free_world(&world);
  }
}

static void nameservers(void) {
  static const char* const texts[] = {
      "192.0.2.1",     "192.0.2.1:53", "192.0.2.2:5353",  "[::1]:77",
      "[2001:db8::5]", "2001:db8::6",  "192.0.2.256",     "",
      "192.0.2.3:0",   "[::1",         "192.0.2.4:99999", "x"};
  struct evdns_base* dns;
  struct event_base* base = event_base_new();
  struct sockaddr_storage address;
  char text[INET6_ADDRSTRLEN];
  size_t i;
  dns = evdns_base_new(base, 0);
  SAY(evdns_base_count_nameservers(dns));
  SAY(evdns_base_get_nameserver_addr(dns, 0, (struct sockaddr*)&address, sizeof address));
  for (i = 0; i < sizeof texts / sizeof *texts; ++i)
    say("  %s: %d", texts[i], evdns_base_nameserver_ip_add(dns, texts[i]));
  SAY(evdns_base_nameserver_add(dns, htonl(0x7f000005)));
  SAY(evdns_base_nameserver_add(dns, htonl(0x7f000005)));
  SAY(evdns_base_count_nameservers(dns));
  for (i = 0; i < 9; ++i) {
    const int size =
        evdns_base_get_nameserver_addr(dns, (int)i, (struct sockaddr*)&address, sizeof address);
    const struct sockaddr_in* four = (struct sockaddr_in*)&address;
    const struct sockaddr_in6* six = (struct sockaddr_in6*)&address;
    if (size < 0) {
      say("  %d: none", (int)i);
      continue;
    }
    inet_ntop(four->sin_family,
              four->sin_family == AF_INET ? (void*)&four->sin_addr : (void*)&six->sin6_addr, text,
              sizeof text);
    say("  %d: %s port %d, size %d", (int)i, text, ntohs(four->sin_port), size);
  }
  SAY(evdns_base_get_nameserver_addr(dns, 0, (struct sockaddr*)&address, 3));
  SAY(evdns_base_clear_nameservers_and_suspend(dns));
  SAY(evdns_base_count_nameservers(dns));
  SAY(evdns_base_clear_nameservers_and_suspend(dns));
  evdns_base_free(dns, 0);
  event_base_free(base);
}

static void suspending(void) {
  struct world world;
  struct sockaddr_in address;
  make_world(&world, 0);
  SAY(evdns_base_get_nameserver_addr(world.dns, 0, (struct sockaddr*)&address, sizeof address));
  world.drop = 1;
  ask(&world, DNS_IPv4_A, "one.test", 0);
  settle(&world);
  SAY(evdns_base_clear_nameservers_and_suspend(world.dns));
  ask(&world, DNS_IPv4_A, "many.test", 0);
  settle(&world);
  SAY(evdns_base_resume(world.dns));
  settle(&world);
  add_server(&world, &address);
  settle(&world);
  say("  resumed");
  SAY(evdns_base_resume(world.dns));
  wait_for(&world, 2);
  free_world(&world);
}

/* Two servers: one does not answer, or refuses. */
static void two_servers(void) {
  static const char* const asked[] = {"one.test", "four.test", "nx.test"};
  struct world world, other;
  struct sockaddr_in address;
  size_t i;
  make_world(&world, 0);
  make_world(&other, 0);
  world.quiet = 1;
  evdns_base_get_nameserver_addr(world.dns, 0, (struct sockaddr*)&address, sizeof address);
  evdns_base_clear_nameservers_and_suspend(world.dns);
  {
    struct sockaddr_in silent;
    const int fd = make_socket(&silent);
    add_server(&world, &silent);
    add_server(&world, &address);
    evdns_base_set_option(world.dns, "timeout", "0.3");
    /* On a busy machine, queries to the server that answers may time out, too. */
    evdns_base_set_option(world.dns, "attempts", "100");
    for (i = 0; i < 3; ++i) {
      ask_and_wait(&world, DNS_IPv4_A, asked[i], 0);
      ask_and_wait(&world, DNS_IPv6_AAAA, asked[i], 0);
    }
    close(fd);
  }
  SAY(evdns_base_count_nameservers(world.dns));
  free_world(&other);
  free_world(&world);
}

static void options(void) {
  static const char* const options[][2] = {{"ndots", "2"},
                                           {"ndots:", "x"},
                                           {"ndots", ""},
                                           {"timeout", "3"},
                                           {"timeout:", "0.25"},
                                           {"timeout", "0.0001"},
                                           {"timeout", "-1"},
                                           {"timeout", "soon"},
                                           {"getaddrinfo-allow-skew", "2"},
                                           {"getaddrinfo-allow-skew:", "q"},
                                           {"max-timeouts", "300"},
                                           {"max-timeouts:", "0"},
                                           {"max-timeouts", "-1"},
                                           {"max-inflight", "100000"},
                                           {"max-inflight:", "none"},
                                           {"max-inflight", "-7"},
                                           {"attempts", "256"},
                                           {"attempts:", "-1"},
                                           {"attempts", "many"},
                                           {"randomize-case", "0"},
                                           {"randomize-case:", "no"},
                                           {"bind-to", "127.0.0.1"},
                                           {"bind-to:", "nowhere"},
                                           {"initial-probe-timeout", "4000"},
                                           {"initial-probe-timeout:", "0"},
                                           {"so-rcvbuf", "65536"},
                                           {"so-sndbuf:", "65536"},
                                           {"so-rcvbuf", "x"},
                                           {"so-sndbuf", "-1"},
                                           {"unknown", "1"},
                                           {"time", "1"},
                                           {"", ""},
                                           {"ndots:5", "3"}};
  struct world world;
  size_t i;
  make_world(&world, 0);
  for (i = 0; i < sizeof options / sizeof *options; ++i)
    say("  %s = %s: %d", options[i][0], options[i][1],
        evdns_base_set_option(world.dns, options[i][0], options[i][1]));
  SAY(evdns_base_nameserver_ip_add(world.dns, "127.0.0.2:5"));
  evdns_base_set_option(world.dns, "timeout", "2");
  ask_and_wait(&world, DNS_IPv4_A, "One.CASE.test", DNS_QUERY_NO_SEARCH);
  free_world(&world);
}

static void parse(const char* text, int flags) {
  struct event_base* base = event_base_new();
  struct evdns_base* dns = evdns_base_new(base, 0);
  const char* name = write_file(text);
  say("  flags %d: %d, %d nameservers", flags, evdns_base_resolv_conf_parse(dns, flags, name),
      evdns_base_count_nameservers(dns));
  unlink(name);
  evdns_base_free(dns, 0);
  event_base_free(base);
}

static void resolv_conf(void) {
  static const char* const texts[] = {
      "",
      "nameserver 127.0.0.1\n",
      "# nameserver 127.0.0.9\n;x\nnameserver\t127.0.0.2\nnameserver [::1]:5353\nnameserver bad\n",
      "nameserver 127.0.0.1\nnameserver 127.0.0.1\nnameserver 127.0.0.2\nnameserver 127.0.0.3\n"
      "nameserver 127.0.0.4\nnameserver 127.0.0.5",
      "  nameserver 127.0.0.1\nsearch\ndomain\noptions\nnameserver\n",
      "search a.test b.test\noptions ndots:3 timeout:1 attempts:2 rotate max-inflight:9 x:y\n"};
  struct world world;
  const char* name;
  size_t i;
  int flags;
  for (i = 0; i < sizeof texts / sizeof *texts; ++i) {
    say("  file %d", (int)i);
    for (flags = 0; flags < 32; flags += i == 2 ? 1 : 7) parse(texts[i], flags & ~8);
  }
  make_world(&world, 0);
  SAY(evdns_base_resolv_conf_parse(world.dns, DNS_OPTION_SEARCH, "/nonexistent"));
  SAY(evdns_base_resolv_conf_parse(world.dns, DNS_OPTION_NAMESERVERS, "/nonexistent"));
  SAY(evdns_base_count_nameservers(world.dns));
  SAY(evdns_base_resolv_conf_parse(world.dns, DNS_OPTION_SEARCH, "/"));
  free_world(&world);
  make_world(&world, 0);
  name = write_file("domain only.test\nsearch first.test second.test\noptions ndots:2\n");
  SAY(evdns_base_resolv_conf_parse(world.dns, DNS_OPTION_SEARCH, name));
  unlink(name);
  ask_and_wait(&world, DNS_IPv4_A, "nx.a", 0);
  name = write_file("domain only.test\n");
  SAY(evdns_base_resolv_conf_parse(world.dns, DNS_OPTION_SEARCH, name));
  unlink(name);
  ask_and_wait(&world, DNS_IPv4_A, "nx", 0);
  free_world(&world);
}

static void inactive(void) {
  struct world world;
  make_world(&world, EVDNS_BASE_DISABLE_WHEN_INACTIVE);
  evdns_close_server_port(world.port);
  world.port = NULL;
  SAY(event_base_dispatch(world.base));
  free_world(&world);
  make_world(&world, EVDNS_BASE_DISABLE_WHEN_INACTIVE);
  ask_and_wait(&world, DNS_IPv4_A, "one.test", 0);
  evdns_close_server_port(world.port);
  world.port = NULL;
  SAY(event_base_dispatch(world.base));
  free_world(&world);
}

static void global(void) {
  struct world world;
  struct sockaddr_in address;
  struct in_addr four;
  struct in6_addr six;
  char text[64];
  const char* name;
  struct event_base* base = event_init();
  SAY(evdns_get_global_base() == NULL);
  memset(&world, 0, sizeof world);
  world.base = base;
  world.port = evdns_add_server_port(make_socket(&address), 0, answer, &world);
  SAY(evdns_add_server_port(0, 1, answer, &world) == NULL);
  snprintf(text, sizeof text, "127.0.0.1:%d", ntohs(address.sin_port));
  SAY(evdns_nameserver_ip_add(text));
  SAY(evdns_get_global_base() != NULL);
  SAY(evdns_nameserver_add(htonl(0x7f000009)));
  SAY(evdns_count_nameservers());
  SAY(evdns_clear_nameservers_and_suspend());
  SAY(evdns_nameserver_ip_add(text));
  SAY(evdns_resume());
  SAY(evdns_set_option("timeout", "100", 0));
  evdns_search_add("test");
  evdns_search_ndots_set(1);
  SAY(evdns_resolve_ipv4("one", 0, on_result, "four"));
  wait_for(&world, 1);
  evdns_search_clear();
  SAY(evdns_resolve_ipv6("one.test", 0, on_result, "six"));
  wait_for(&world, 2);
  inet_pton(AF_INET, "192.0.2.77", &four);
  inet_pton(AF_INET6, "2001:db8::1:f00d", &six);
  SAY(evdns_resolve_reverse(&four, 0, on_result, "reverse"));
  wait_for(&world, 3);
  SAY(evdns_resolve_reverse_ipv6(&six, 0, on_result, "reverse"));
  wait_for(&world, 4);
  name = write_file("nameserver 127.0.0.7\n");
  SAY(evdns_resolv_conf_parse(DNS_OPTION_NAMESERVERS, name));
  unlink(name);
  SAY(evdns_count_nameservers());
  evdns_set_transaction_id_fn(NULL);
  evdns_set_random_bytes_fn(NULL);
  SAY(evdns_resolve_ipv4("drop.test", 0, on_result, "dropped"));
  evdns_shutdown(1);
  wait_for(&world, 5);
  SAY(evdns_get_global_base() == NULL);
  evdns_shutdown(0);
  world.dns = NULL;
  free_world(&world);
}

const struct section dns_client_sections[] = {{"answers", answers},
                                              {"names", names},
                                              {"search", search},
                                              {"timeouts", timeouts},
                                              {"cancelling", cancelling},
                                              {"requests in flight", in_flight},
                                              {"freeing", freeing},
                                              {"nameservers", nameservers},
                                              {"suspending", suspending},
                                              {"two servers", two_servers},
                                              {"options", options},
                                              {"resolv.conf", resolv_conf},
                                              {"inactive", inactive},
                                              {"global", global},
                                              {NULL, NULL}};
