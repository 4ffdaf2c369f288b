/* A walk through the chapters of libevent's manual on bufferevents and listeners: see
   walk_buffer.h. */
#ifndef WALK_BUFFEREVENT_H
#define WALK_BUFFEREVENT_H

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_struct.h>
#include <event2/event.h>
#include <event2/event_compat.h>
/* Needs those above. */
#include <event2/bufferevent_compat.h>

#include "walk_buffer.h"

extern const struct section socket_sections[];
extern const struct section pair_sections[];
extern const struct section filter_sections[];
extern const struct section limit_bev_sections[];
extern const struct section listener_sections[];

/* A bufferevent of one end of a socket pair, whose callbacks print the name. */
struct peer {
  const char* name;
  struct bufferevent* bev;
  int other;     /* The other end. */
  int free_in;   /* Free the bufferevent in the callback for these events (BEV_EVENT_*). */
  int free_read; /* Free it in the read or write callback. */
  int free_write;
  size_t drain_at; /* Drain the input in the read callback once it is so long. */
};

void make_peer(struct peer* peer, const char* name, struct event_base* base, int options);

void on_read(struct bufferevent* bev, void* peer);
void on_write(struct bufferevent* bev, void* peer);
void on_event(struct bufferevent* bev, short kind, void* peer);

const char* what_names(int kind);

/* Runs the loop without waiting until nothing happens any more. */
void turn(struct event_base* base);
void get(int fd);

#endif
