/* Servers, seen from a socket; and replies as no server of evdns sends them. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "walk_dns.h"

static int question_only;

/* Answers every way at once. */
static void on_request(struct evdns_server_request* request, void* world) {
  struct sockaddr_storage peer;
  unsigned char addresses[32] = {1, 2, 3, 4, 5, 6, 7, 8};
  struct in_addr address;
  const char* name = request->questions[0]->name;
  int i;
  (void)world;
  say("    %d questions, flags %x", request->nquestions, request->flags);
  for (i = 0; i < request->nquestions; ++i)
    say("      %s, type %d, class %d", request->questions[i]->name, request->questions[i]->type,
        request->questions[i]->dns_question_class);
  if (question_only) {
    SAY(evdns_server_request_respond(request, -1));
    SAY(evdns_server_request_respond(request, 16));
    SAY(evdns_server_request_respond(request, question_only));
    return;
  }
  SAY(evdns_server_request_get_requesting_addr(request, (struct sockaddr*)&peer, sizeof peer));
  SAY(((struct sockaddr_in*)&peer)->sin_addr.s_addr == htonl(INADDR_LOOPBACK));
  SAY(evdns_server_request_get_requesting_addr(request, (struct sockaddr*)&peer, 4));
  evdns_server_request_set_flags(request, EVDNS_FLAGS_AA | EVDNS_FLAGS_RD);
  SAY(evdns_server_request_add_a_reply(request, name, 1, addresses, 60));
  SAY(evdns_server_request_add_aaaa_reply(request, name, 1, addresses, 61));
  SAY(evdns_server_request_add_cname_reply(request, "www.example.org", "example.org", 62));
  inet_pton(AF_INET, "192.0.2.254", &address);
  SAY(evdns_server_request_add_ptr_reply(request, &address, NULL, "a.b.example.org", 63));
  SAY(evdns_server_request_add_ptr_reply(request, NULL, "x.in-addr.arpa", "b.example.org", 64));
  SAY(evdns_server_request_add_ptr_reply(request, &address, "x", "y", 0));
  SAY(evdns_server_request_add_ptr_reply(request, NULL, NULL, "y", 0));
  SAY(evdns_server_request_add_reply(request, EVDNS_AUTHORITY_SECTION, "example.org", EVDNS_TYPE_NS,
                                     1, 65, -1, 1, "ns.example.org"));
  SAY(evdns_server_request_add_reply(request, EVDNS_ADDITIONAL_SECTION, "ns.example.org",
                                     EVDNS_TYPE_TXT, 1, 66, 6, 0, "\5hello"));
  SAY(evdns_server_request_add_reply(request, EVDNS_ADDITIONAL_SECTION, "empty", 300, 3, 67, 0, 0,
                                     NULL));
  SAY(evdns_server_request_add_reply(request, 3, "empty", 300, 3, 67, 0, 0, NULL));
  SAY(evdns_server_request_respond(request, 0));
}

/* Sends a packet to the port and prints the reply. */
static void send_raw(struct world* world, int fd, const struct sockaddr_in* to, const char* bytes,
                     size_t size) {
  unsigned char reply[2000];
  struct pollfd readable = {fd, POLLIN, 0};
  ssize_t got;
  need(sendto(fd, bytes, size, 0, (const struct sockaddr*)to, sizeof *to) == (ssize_t)size,
       "sendto");
  settle(world);
  need(poll(&readable, 1, 0) >= 0, "poll");
  got = recv(fd, reply, sizeof reply, MSG_DONTWAIT);
  if (got < 0) {
    say("    no reply");
  } else {
    show_bytes("reply", reply, (size_t)got);
  }
}

#define RAW(bytes) send_raw(&world, fd, &address, bytes, sizeof bytes - 1)

static void replies(void) {
  struct world world;
  struct sockaddr_in address, own;
  int fd = make_socket(&own);
  memset(&world, 0, sizeof world);
  world.base = event_base_new();
  world.port =
      evdns_add_server_port_with_base(world.base, make_socket(&address), 0, on_request, &world);
  RAW("\1\2\1\x10\0\1\0\0\0\0\0\0\3www\7example\3org\0\0\1\0\1");
  say("  two questions, the second one compressed");
  RAW("\1\3\0\0\0\2\0\0\0\0\0\0\1a\1b\0\0\1\0\1\1c\xc0\x0c\0\x1c\0\3");
  for (question_only = 1; question_only < 16; question_only += 5)
    RAW("\xff\xff\1\0\0\1\0\0\0\0\0\0\3www\7example\3org\0\0\xff\0\1");
  say("  not queries");
  RAW("\1\2\x81\0\0\1\0\0\0\0\0\0\1a\0\0\1\0\1");
  RAW("\1\2\1\0\0\0\0\0\0\0\0\0\1a\0\0\1\0\1");
  RAW("\1\2\1\0\0\1\0\0\0\0\0\0\1a\0\0\1\0");
  RAW("\1\2\1\0\0\2\0\0\0\0\0\0\1a\0\0\1\0\1");
  RAW("\1\2\1\0\0\1\0\0\0\0\0\0\xc0\x0c\0\1\0\1");
  RAW("\1\2\1\0\0\1\0\0\0\0\0\0\5ab\0\0\1\0\1");
  RAW("\1\2\1\0\0\1\0\0\0\0\0\0\xc0\xff\0\1\0\1");
  say("  after them");
  question_only = 3;
  RAW("\1\2\1\0\0\1\0\0\0\0\0\0\1a\0\0\1\0\1trailing");
  evdns_close_server_port(world.port);
  event_base_loop(world.base, EVLOOP_NONBLOCK);
  close(fd);
  event_base_free(world.base);
}

static struct evdns_server_request* kept;
static void keep(struct evdns_server_request* request, void* argument) {
  (void)argument;
  kept = request;
  ++results;
}

/* A port exists as long as it has requests. */
static void closing(void) {
  struct world world;
  struct sockaddr_in address;
  memset(&world, 0, sizeof world);
  world.base = event_base_new();
  world.dns = evdns_base_new(world.base, 0);
  world.port = evdns_add_server_port_with_base(world.base, make_socket(&address), 0, keep, NULL);
  add_server(&world, &address);
  evdns_base_set_option(world.dns, "timeout", "9");
  evdns_base_resolve_ipv4(world.dns, "x.test", 0, on_result, "x");
  wait_for(&world, 1);
  evdns_close_server_port(world.port);
  world.port = NULL;
  SAY(evdns_server_request_add_a_reply(kept, "x.test", 1, "\1\2\3\4", 5));
  SAY(evdns_server_request_respond(kept, 0));
  wait_for(&world, 2);
  free_world(&world);
}

/* A server of its own that sends these bytes for the id and the question of a request. */
struct forger {
  int fd, other;
  struct sockaddr_in address;
  unsigned char query[512];
  size_t size;
  struct sockaddr_in client;
};

static void receive(struct world* world, struct forger* forger) {
  socklen_t size = sizeof forger->client;
  ssize_t got = -1;
  int i;
  for (i = 0; got < 0 && i < 2000; ++i) {
    settle(world);
    got = recvfrom(forger->fd, forger->query, sizeof forger->query, 0,
                   (struct sockaddr*)&forger->client, &size);
    if (got < 0) usleep(500);
  }
  need(got > 0, "recvfrom");
  forger->size = (size_t)got;
}

static void reply(struct world* world, struct forger* forger, int fd, int id_change,
                  const char* flags, const char* counts, const char* records, size_t size) {
  unsigned char packet[1024];
  memcpy(packet, forger->query, forger->size);
  packet[1] = (unsigned char)(packet[1] + id_change);
  memcpy(packet + 2, flags, 2);
  memcpy(packet + 6, counts, 6);
  memcpy(packet + forger->size, records, size);
  sendto(fd, packet, forger->size + size, 0, (struct sockaddr*)&forger->client,
         sizeof forger->client);
  settle(world);
}

#define REPLY(fd, id_change, flags, counts, records) \
  reply(&world, &forger, fd, id_change, flags, counts, records, sizeof records - 1)

static void ask(struct world* world, struct forger* forger) {
  results = 0;
  evdns_base_resolve_ipv4(world->dns, "x.test", 0, on_result, "x");
  receive(world, forger);
}

static void forging(void) {
  static const char good[] = "\xc0\x0c\0\1\0\1\0\0\0\x09\0\4\1\2\3\4";
  struct world world;
  struct forger forger;
  memset(&world, 0, sizeof world);
  world.base = event_base_new();
  world.dns = evdns_base_new(world.base, 0);
  forger.fd = make_socket(&forger.address);
  forger.other = make_socket(&forger.client);
  add_server(&world, &forger.address);

  say("  another id, not a response, then the response");
  ask(&world, &forger);
  REPLY(forger.fd, 1, "\x81\x80", "\0\1\0\0\0\0", good);
  REPLY(forger.fd, 0, "\x01\x80", "\0\1\0\0\0\0", good);
  SAY(results);
  REPLY(forger.fd, 0, "\x81\x80", "\0\1\0\0\0\0", good);
  SAY(results);
  say("  truncated");
  ask(&world, &forger);
  REPLY(forger.fd, 0, "\x83\x80", "\0\0\0\0\0\0", "");
  SAY(results);
  say("  more records than there are");
  ask(&world, &forger);
  REPLY(forger.fd, 0, "\x81\x80", "\0\2\0\0\0\0", good);
  SAY(results);
  say("  an address of three bytes");
  ask(&world, &forger);
  REPLY(forger.fd, 0, "\x81\x80", "\0\1\0\0\0\0", "\xc0\x0c\0\1\0\1\0\0\0\x09\0\3\1\2\3");
  SAY(results);
  say("  an unknown type and class before it");
  ask(&world, &forger);
  REPLY(forger.fd, 0, "\x81\x80", "\0\3\0\0\0\0",
        "\xc0\x0c\1\1\0\1\0\0\0\x09\0\3\1\2\3\xc0\x0c\0\1\0\3\0\0\0\x09\0\4\5\6\7\x08"
        "\xc0\x0c\0\1\0\1\0\0\0\x09\0\4\1\2\3\4");
  SAY(results);
  say("  a name that points to itself");
  ask(&world, &forger);
  REPLY(forger.fd, 0, "\x81\x80", "\0\1\0\0\0\0", "\xc0\x18\0\1\0\1\0\0\0\x09\0\4\1\2\3\4");
  SAY(results);
  say("  an error without the question");
  ask(&world, &forger);
  forger.size = 12;
  forger.query[5] = 0;
  REPLY(forger.fd, 0, "\x81\x81", "\0\0\0\0\0\0", "");
  SAY(results);
  say("  an rcode without a name");
  ask(&world, &forger);
  REPLY(forger.fd, 0, "\x81\x8b", "\0\0\0\0\0\0", "");
  SAY(results);
  say("  several addresses in one record");
  ask(&world, &forger);
  REPLY(forger.fd, 0, "\x81\x80", "\0\1\0\0\0\0",
        "\xc0\x0c\0\1\0\1\0\0\0\x09\0\x08\1\2\3\4\5\6\7\x08");
  SAY(results);
  close(forger.fd);
  close(forger.other);
  free_world(&world);
}

const struct section dns_server_sections[] = {
    {"replies", replies}, {"closing", closing}, {"forging", forging}, {NULL, NULL}};
