/* A walk through the chapters of libevent's manual on bases, loops and events, in one process. */
#ifndef WALK_EVENT_H
#define WALK_EVENT_H

#include <event2/event.h>

#include "walk/trace.h"

/* Of the current section. */
extern struct event_base* base;

void section(const char* name);
/* Begins a section with a new base. */
void begin_section(const char* name);
/* Frees the base. */
void end_section(void);

const struct timeval* ms(int milliseconds);

void on_event(int fd, short events, void* name);
void on_read(int fd, short events, void* name);
void on_log(int severity, const char* text);

/* An event whose callback, on_event, prints the name. */
struct event* make(int fd, short events, const char* name);

/* Prints how many events the base has. */
void counts(void);

void pair(int ends[2]);

/* Sections of walk_event_descriptors.c. */
void pending(void);
void bad_descriptors(void);
void once_events(void);
void edge_and_closed(void);
void reused_descriptors(void);
void order(void);

/* Sections of walk_event_queues.c. */
void timeouts(void);
void priorities(void);
void signals(void);
void listing(void);
void finalizers(void);
void limits(void);

#endif
