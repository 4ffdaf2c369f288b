/* A walk through the manual's chapter on evdns: a resolver, and servers in the same process. */
#ifndef WALK_DNS_H
#define WALK_DNS_H

#include <netinet/in.h>

#include <event2/dns.h>
#include <event2/dns_compat.h>
#include <event2/dns_struct.h>
#include <event2/event.h>
#include <event2/util.h>

#include "walk/sections.h"
#include "walk/trace.h"

extern const struct section dns_client_sections[];
extern const struct section dns_addrinfo_sections[];
extern const struct section dns_server_sections[];

/* A base, a resolver and a server that answers by the first label of the name. */
struct world {
  struct event_base* base;
  struct evdns_base* dns;
  struct evdns_server_port* port;
  int quiet;                       /* The server prints no questions. */
  int drop;                        /* How many of the next requests are not answered. */
  int asked;                       /* How many requests the server got. */
  struct evdns_request* cancelled; /* Cancelled when a request arrives. */
  struct evdns_getaddrinfo_request* cancelled_lookup;
};
void make_world(struct world* world, int flags);
void free_world(struct world* world);
/* A UDP socket on a free port of the loopback. */
int make_socket(struct sockaddr_in* address);
void add_server(struct world* world, const struct sockaddr_in* address);
/* Runs the loop until so many results have arrived. */
void wait_for(struct world* world, int results);
/* Runs it without waiting until nothing happens any more. */
void settle(struct world* world);
extern int results;

void on_result(int result, char type, int count, int ttl, void* addresses, void* name);
void on_addresses(int result, struct evutil_addrinfo* addresses, void* name);
void answer(struct evdns_server_request* request, void* world);
void show_bytes(const char* name, const unsigned char* bytes, size_t size);
/* Writes a file and returns its name. */
const char* write_file(const char* text);

#endif
