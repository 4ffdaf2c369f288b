/* The walk through evdns: the nameservers and helpers of its sections. */
#define _GNU_SOURCE
#include "walk_dns.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int results;

void show_bytes(const char* name, const unsigned char* bytes, size_t size) {
  char text[4096];
  size_t i, at = 0;
  for (i = 0; i < size && at < sizeof text - 5; ++i)
    at += (size_t)sprintf(text + at, isgraph(bytes[i]) ? "%c" : "\\%02x", bytes[i]);
  text[at] = '\0';
  say("  %s: %zu [%s]", name, size, text);
}

int make_socket(struct sockaddr_in* address) {
  socklen_t size = sizeof *address;
  for (;;) {
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    int tcp = socket(AF_INET, SOCK_STREAM, 0);
    memset(address, 0, sizeof *address);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    need(bind(fd, (struct sockaddr*)address, sizeof *address) == 0, "bind");
    need(getsockname(fd, (struct sockaddr*)address, &size) == 0, "getsockname");
    /* Stays open, so that nothing else answers over TCP. */
    if (bind(tcp, (struct sockaddr*)address, sizeof *address) == 0) return fd;
    close(fd);
    close(tcp);
  }
}

void add_server(struct world* world, const struct sockaddr_in* address) {
  need(evdns_base_nameserver_sockaddr_add(world->dns, (const struct sockaddr*)address,
                                          sizeof *address, 0) == 0,
       "nameserver_sockaddr_add");
}

void make_world(struct world* world, int flags) {
  struct sockaddr_in address;
  int fd = make_socket(&address);
  memset(world, 0, sizeof *world);
  world->base = event_base_new();
  world->dns = evdns_base_new(world->base, flags);
  world->port = evdns_add_server_port_with_base(world->base, fd, 0, answer, world);
  need(world->dns != NULL && world->port != NULL, "make_world");
  add_server(world, &address);
  results = 0;
}

void free_world(struct world* world) {
  if (world->port != NULL) evdns_close_server_port(world->port);
  if (world->dns != NULL) evdns_base_free(world->dns, 0);
  event_base_loop(world->base, EVLOOP_NONBLOCK);
  event_base_free(world->base);
}

void wait_for(struct world* world, int count) {
  while (results < count) need(event_base_loop(world->base, EVLOOP_ONCE) == 0, "loop");
}

void settle(struct world* world) {
  int i;
  for (i = 0; i < 20; ++i) event_base_loop(world->base, EVLOOP_NONBLOCK);
}

void on_result(int result, char type, int count, int ttl, void* addresses, void* name) {
  char text[INET6_ADDRSTRLEN];
  int i;
  ++results;
  say("    %s: %s, type %d, count %d, ttl %d", (const char*)name, evdns_err_to_string(result), type,
      count, ttl);
  for (i = 0; i < count && type != DNS_PTR; ++i) {
    if (type == DNS_IPv4_A) {
      inet_ntop(AF_INET, (char*)addresses + 4 * i, text, sizeof text);
    } else {
      inet_ntop(AF_INET6, (char*)addresses + 16 * i, text, sizeof text);
    }
    say("      %s", text);
  }
  if (type == DNS_PTR) say("      %s", *(char**)addresses);
}

void on_addresses(int result, struct evutil_addrinfo* addresses, void* name) {
  struct evutil_addrinfo* each;
  char text[INET6_ADDRSTRLEN];
  ++results;
  say("    %s: %d", (const char*)name, result);
  for (each = addresses; each != NULL; each = each->ai_next) {
    const struct sockaddr_in* four = (struct sockaddr_in*)each->ai_addr;
    const struct sockaddr_in6* six = (struct sockaddr_in6*)each->ai_addr;
    if (each->ai_family == AF_INET) {
      inet_ntop(AF_INET, &four->sin_addr, text, sizeof text);
    } else {
      inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text);
    }
    say("      %s port %d, type %d, protocol %d, size %d, name %s", text, ntohs(four->sin_port),
        each->ai_socktype, each->ai_protocol, (int)each->ai_addrlen,
        each->ai_canonname != NULL ? each->ai_canonname : "-");
  }
  if (addresses != NULL) evutil_freeaddrinfo(addresses);
}

const char* write_file(const char* text) {
  static char name[] = "/tmp/walk_dns_XXXXXX";
  int fd;
  strcpy(name + sizeof name - 7, "XXXXXX");
  fd = mkstemp(name);
  need(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "write");
  close(fd);
  return name;
}

static void answer_address(struct evdns_server_request* request, const char* name, int type,
                           int last) {
  unsigned char four[4] = {192, 0, 2, 0};
  unsigned char six[16] = {0x20, 0x01, 0x0d, 0xb8};
  four[3] = six[15] = (unsigned char)last;
  if (type == EVDNS_TYPE_A) {
    evdns_server_request_add_a_reply(request, name, 1, four, 60);
  } else {
    evdns_server_request_add_aaaa_reply(request, name, 1, six, 60);
  }
}

static int starts_with(const char* name, const char* label) {
  return evutil_ascii_strncasecmp(name, label, strlen(label)) == 0;
}

void answer(struct evdns_server_request* request, void* argument) {
  static const char* const codes[] = {"noerror.", "formerr.", "servfail.",
                                      "nx.",      "notimp.",  "refused."};
  struct world* world = argument;
  const char* name = request->questions[0]->name;
  const int type = request->questions[0]->type;
  char lower[256];
  int i, code = 0;
  for (i = 0; name[i] != '\0'; ++i) lower[i] = (char)tolower((unsigned char)name[i]);
  lower[i] = '\0';
  ++world->asked;
  if (!world->quiet)
    say("    asked for %s, type %d, class %d, flags %x, %d questions", lower, type,
        request->questions[0]->dns_question_class, request->flags, request->nquestions);
  if (world->cancelled != NULL) {
    evdns_cancel_request(world->dns, world->cancelled);
    world->cancelled = NULL;
  }
  if (world->cancelled_lookup != NULL) {
    evdns_getaddrinfo_cancel(world->cancelled_lookup);
    world->cancelled_lookup = NULL;
  }
  if (world->drop > 0 || starts_with(name, "drop.") ||
      (starts_with(name, "drop6.") && type == EVDNS_TYPE_AAAA)) {
    if (world->drop > 0) --world->drop;
    evdns_server_request_drop(request);
    return;
  }
  for (i = 0; i < 6; ++i)
    if (starts_with(name, codes[i])) code = i;
  if (type == EVDNS_TYPE_PTR) {
    evdns_server_request_add_ptr_reply(request, NULL, name, "host.example.org", 80);
  } else if (starts_with(name, "one.") || starts_with(name, "drop6.") ||
             (starts_with(name, "four.") && type == EVDNS_TYPE_A) ||
             (starts_with(name, "six.") && type == EVDNS_TYPE_AAAA)) {
    answer_address(request, name, type, 1);
  } else if (starts_with(name, "many.")) {
    for (i = 1; i <= 5; ++i) answer_address(request, name, type, i);
  } else if (starts_with(name, "alias.")) {
    evdns_server_request_add_cname_reply(request, name, "target.example.org", 60);
    answer_address(request, "target.example.org", type, 9);
  } else if (starts_with(name, "big.")) {
    for (i = 0; i < 60; ++i) answer_address(request, name, type, i);
  } else if (starts_with(name, "soa.")) {
    static const char soa[] = "\0\0\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\x19";
    evdns_server_request_add_reply(request, EVDNS_AUTHORITY_SECTION, "example.org", EVDNS_TYPE_SOA,
                                   1, 33, 22, 0, soa);
  } else if (code == 0 && !starts_with(name, "nodata.") && !starts_with(name, "four.") &&
             !starts_with(name, "six.")) {
    code = 3;
  }
  need(evdns_server_request_respond(request, code) == 0, "respond");
}

const struct section* const all_sections[] = {dns_client_sections, dns_addrinfo_sections,
                                              dns_server_sections, NULL};

const char* const library_function = "evdns_base_new";
