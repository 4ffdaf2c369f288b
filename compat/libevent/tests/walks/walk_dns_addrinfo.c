/* evdns_getaddrinfo, hosts files, and bufferevents that connect by name. */
#define _GNU_SOURCE
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/bufferevent.h>
#include <event2/listener.h>

#include "walk_dns.h"

static struct evdns_getaddrinfo_request* look_up(struct world* world, const char* node,
                                                 const char* service, int family, int type,
                                                 int protocol, int flags) {
  struct evutil_addrinfo hints;
  struct evdns_getaddrinfo_request* made;
  memset(&hints, 0, sizeof hints);
  hints.ai_family = family;
  hints.ai_socktype = type;
  hints.ai_protocol = protocol;
  hints.ai_flags = flags;
  results = 0;
  say("  %s, %s, family %d, type %d, protocol %d, flags %x", node != NULL ? node : "-",
      service != NULL ? service : "-", family, type, protocol, (unsigned)flags);
  made = evdns_getaddrinfo(world->dns, node, service, &hints, on_addresses,
                           (void*)(node != NULL ? node : "-"));
  if (made == NULL) say("    (at once)");
  return made;
}

static void look_up_and_wait(struct world* world, const char* node, const char* service, int family,
                             int type, int protocol, int flags) {
  look_up(world, node, service, family, type, protocol, flags);
  wait_for(world, 1);
}

static void literals(void) {
  static const char* const nodes[] = {NULL, "192.0.2.1", "::1", "2001:db8::7", "192.0.2.999"};
  static const char* const services[] = {NULL, "80", "http", "65536", "-1", "no-such-service", ""};
  static const int families[] = {PF_UNSPEC, PF_INET, PF_INET6, PF_UNIX};
  struct world world;
  size_t n, s, f;
  make_world(&world, 0);
  world.quiet = 1;
  for (n = 0; n < 4; ++n)
    for (s = 0; s < sizeof services / sizeof *services; ++s)
      for (f = 0; f < 4; ++f) {
        /* A literal of the other family is looked up. */
        if ((n == 1 && f == 2) || (n > 1 && f == 1)) continue;
        look_up_and_wait(&world, nodes[n], services[s], families[f], s % 3 == 0 ? SOCK_STREAM : 0,
                         0, n == 0 && s == 1 ? EVUTIL_AI_PASSIVE : 0);
      }
  look_up_and_wait(&world, "192.0.2.1", "http", PF_INET, SOCK_STREAM, 0, EVUTIL_AI_NUMERICSERV);
  look_up_and_wait(&world, "one.test", "80", PF_INET, SOCK_STREAM, 0, EVUTIL_AI_NUMERICHOST);
  look_up_and_wait(&world, "192.0.2.1", "80", PF_INET, SOCK_STREAM, 0, EVUTIL_AI_NUMERICHOST);
  look_up_and_wait(&world, "192.0.2.1", "80", PF_INET, 0, IPPROTO_UDP, 0);
  look_up_and_wait(&world, "192.0.2.1", "80", PF_INET, SOCK_DGRAM, 0, 0);
  SAY(evdns_getaddrinfo(NULL, "one.test", "80", NULL, on_addresses, "no base") == NULL);
  results = 0;
  SAY(evdns_getaddrinfo(world.dns, "one.test", "80", NULL, on_addresses, "no hints") != NULL);
  wait_for(&world, 1);
  free_world(&world);
}

static void names(void) {
  static const char* const nodes[] = {"one.test",    "four.test",  "six.test",  "nx.test",
                                      "nodata.test", "alias.test", "many.test", "refused.test"};
  static const int families[] = {PF_UNSPEC, PF_INET, PF_INET6};
  struct world world;
  size_t n, f;
  make_world(&world, 0);
  /* Answers to both families may arrive in one iteration. */
  world.quiet = 1;
  for (n = 0; n < sizeof nodes / sizeof *nodes; ++n)
    for (f = 0; f < 3; ++f)
      look_up_and_wait(&world, nodes[n], "443", families[f], SOCK_STREAM, 0,
                       n == 5 ? EVUTIL_AI_CANONNAME : 0);
  evdns_base_search_add(world.dns, "test");
  look_up_and_wait(&world, "one", "443", PF_INET, SOCK_STREAM, 0, 0);
  look_up_and_wait(&world, "", "443", PF_INET, SOCK_STREAM, 0, 0);
  free_world(&world);
}

/* One of two answers does not come. */
static void skew(void) {
  struct world world;
  make_world(&world, 0);
  world.quiet = 1;
  evdns_base_set_option(world.dns, "getaddrinfo-allow-skew", "0.1");
  look_up_and_wait(&world, "drop6.test", "1", PF_UNSPEC, SOCK_STREAM, 0, 0);
  settle(&world);
  evdns_base_set_option(world.dns, "timeout", "0.05");
  look_up_and_wait(&world, "drop.test", "1", PF_UNSPEC, SOCK_STREAM, 0, 0);
  settle(&world);
  free_world(&world);
}

static void hosts(void) {
  static const char* const nodes[] = {"localhost", "known", "KNOWN",     "alias",
                                      "both",      "only6", "commented", "one.test"};
  static const int families[] = {PF_UNSPEC, PF_INET, PF_INET6};
  struct world world;
  const char* name = write_file(
      "# a comment\n192.0.2.10 known alias # commented\n\n  192.0.2.11\tboth\n"
      "2001:db8::11 both only6#commented\nbad line\n192.0.2.12:80 commented\n192.0.2.13\n"
      "192.0.2.14 two\n192.0.2.15 two");
  size_t n, f;
  make_world(&world, 0);
  world.quiet = 1;
  SAY(evdns_base_load_hosts(world.dns, name));
  unlink(name);
  SAY(evdns_base_load_hosts(world.dns, NULL));
  SAY(evdns_base_load_hosts(world.dns, "/nonexistent"));
  evdns_base_clear_host_addresses(world.dns);
  name = write_file(
      "127.0.0.1 localhost\n# a comment\n192.0.2.10 known alias # commented\n\n  192.0.2.11\tboth\n"
      "2001:db8::11 both only6#commented\nbad line\n192.0.2.12:80 commented\n192.0.2.13\n"
      "192.0.2.14 two\n192.0.2.15 two");
  SAY(evdns_base_load_hosts(world.dns, name));
  unlink(name);
  for (n = 0; n < sizeof nodes / sizeof *nodes; ++n)
    for (f = 0; f < 3; ++f) {
      /* For a family that the file does not have, the original returns no error and no address. */
      if ((f == 2 && n < 4) || (f == 1 && n == 5)) continue;
      look_up_and_wait(&world, nodes[n], "25", families[f], SOCK_STREAM, 0, 0);
    }
  look_up_and_wait(&world, "two", "25", PF_UNSPEC, SOCK_DGRAM, 0, 0);
  evdns_base_clear_host_addresses(world.dns);
  look_up_and_wait(&world, "known", "25", PF_INET, SOCK_STREAM, 0, 0);
  free_world(&world);
}

static void cancelling(void) {
  static const int families[] = {PF_UNSPEC, PF_INET, PF_INET6};
  struct world world;
  struct evdns_getaddrinfo_request* made;
  size_t f;
  make_world(&world, 0);
  world.quiet = 1;
  for (f = 0; f < 3; ++f) {
    made = look_up(&world, "one.test", "1", families[f], SOCK_STREAM, 0, 0);
    evdns_getaddrinfo_cancel(made);
    say("    (cancelled)");
    wait_for(&world, 1);
    settle(&world);
    world.cancelled_lookup = look_up(&world, "drop.test", "1", families[f], SOCK_STREAM, 0, 0);
    wait_for(&world, 1);
    settle(&world);
  }
  made = look_up(&world, "drop6.test", "1", PF_UNSPEC, SOCK_STREAM, 0, 0);
  settle(&world);
  say("    (one has been answered)");
  evdns_getaddrinfo_cancel(made);
  wait_for(&world, 1);
  settle(&world);
  say("  shutdown");
  look_up(&world, "drop.test", "1", PF_UNSPEC, SOCK_STREAM, 0, 0);
  settle(&world);
  evdns_base_free(world.dns, 1);
  world.dns = NULL;
  wait_for(&world, 1);
  free_world(&world);
}

static void on_accept(struct evconnlistener* listener, evutil_socket_t fd, struct sockaddr* address,
                      int size, void* argument) {
  (void)listener, (void)address, (void)size, (void)argument;
  close(fd);
}

static void on_event(struct bufferevent* bev, short what, void* argument) {
  (void)argument;
  ++results;
  say("    event %x, dns error %d", (unsigned)what, bufferevent_socket_get_dns_error(bev));
}

static void connecting(void) {
  struct world world;
  struct sockaddr_in address;
  struct evconnlistener* listener;
  struct bufferevent* bev;
  socklen_t size = sizeof address;
  const char* name = write_file("127.0.0.1 here\n");
  int port;
  make_world(&world, 0);
  world.quiet = 1;
  evdns_base_load_hosts(world.dns, name);
  unlink(name);
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  listener = evconnlistener_new_bind(world.base, on_accept, NULL, LEV_OPT_CLOSE_ON_FREE, -1,
                                     (struct sockaddr*)&address, sizeof address);
  need(listener != NULL, "listener");
  getsockname(evconnlistener_get_fd(listener), (struct sockaddr*)&address, &size);
  port = ntohs(address.sin_port);

  bev = bufferevent_socket_new(world.base, -1, BEV_OPT_CLOSE_ON_FREE);
  bufferevent_setcb(bev, NULL, NULL, on_event, NULL);
  SAY(bufferevent_socket_connect_hostname(bev, world.dns, AF_INET, "here", port));
  wait_for(&world, 1);
  bufferevent_free(bev);

  results = 0;
  bev = bufferevent_socket_new(world.base, -1, BEV_OPT_CLOSE_ON_FREE);
  bufferevent_setcb(bev, NULL, NULL, on_event, NULL);
  SAY(bufferevent_socket_connect_hostname(bev, world.dns, AF_UNSPEC, "nx.test", port));
  wait_for(&world, 1);
  SAY(bufferevent_socket_get_dns_error(bev));
  bufferevent_free(bev);

  results = 0;
  bev = bufferevent_socket_new(world.base, -1, BEV_OPT_CLOSE_ON_FREE);
  bufferevent_setcb(bev, NULL, NULL, on_event, NULL);
  SAY(bufferevent_socket_connect_hostname(bev, world.dns, AF_UNIX, "here", port));
  SAY(bufferevent_socket_connect_hostname(bev, world.dns, AF_INET, "here", 0));
  SAY(bufferevent_socket_connect_hostname(bev, world.dns, AF_INET, "here", 65536));
  SAY(bufferevent_socket_connect_hostname(bev, world.dns, AF_INET, "drop.test", port));
  settle(&world);
  say("  freed while it looks up the name");
  bufferevent_free(bev);
  settle(&world);
  SAY(results);
  evconnlistener_free(listener);
  free_world(&world);
}

const struct section dns_addrinfo_sections[] = {{"literals", literals},
                                                {"names of getaddrinfo", names},
                                                {"skew", skew},
                                                {"hosts", hosts},
                                                {"cancelling getaddrinfo", cancelling},
                                                {"connecting", connecting},
                                                {NULL, NULL}};
