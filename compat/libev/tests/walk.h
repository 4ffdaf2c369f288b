/* A walk through libev's manual, ev(3), section by section. */
#ifndef WALK_H
#define WALK_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <ev.h>

#include "walk/sections.h"
#include "walk/trace.h"

typedef struct ev_loop Loop;

extern const struct section loop_sections[];
extern const struct section watcher_sections[];
extern const struct section io_sections[];
extern const struct section time_sections[];
extern const struct section clock_sections[];
extern const struct section process_sections[];
extern const struct section other_sections[];
extern const struct section event_sections[];
extern const struct section misuse_sections[];
extern const struct section random_sections[];

/* Callbacks that print the events and the name that the watcher's `data` points to. */
void on_io(Loop* loop, ev_io* w, int revents);
void on_timer(Loop* loop, ev_timer* w, int revents);
void on_periodic(Loop* loop, ev_periodic* w, int revents);
void on_signal(Loop* loop, ev_signal* w, int revents);
void on_idle(Loop* loop, ev_idle* w, int revents);
void on_prepare(Loop* loop, ev_prepare* w, int revents);
void on_check(Loop* loop, ev_check* w, int revents);
void on_fork(Loop* loop, ev_fork* w, int revents);
void on_cleanup(Loop* loop, ev_cleanup* w, int revents);
void on_async(Loop* loop, ev_async* w, int revents);
void on_embed(Loop* loop, ev_embed* w, int revents);
void on_stat(Loop* loop, ev_stat* w, int revents);

/* The names of a set of events. */
const char* names(int revents);

/* Runs one iteration without waiting. */
#define ITERATE(loop) say("  iteration: %s", ev_run((loop), EVRUN_NOWAIT) ? "more" : "none left")

/* The two ends of a pipe or socket pair, which stay open until the section ends. */
struct ends {
  int read, write;
};
struct ends make_pipe(void);
struct ends make_pair(void);
void drain(int fd);

#endif
