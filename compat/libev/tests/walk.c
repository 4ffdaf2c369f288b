/* The sections of the walk, and what they share. */
#define _GNU_SOURCE
#include "walk.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

const char* names(int revents) {
  static const struct {
    int bit;
    const char* name;
  } known[] = {{EV_READ, "READ"},       {EV_WRITE, "WRITE"},       {EV__IOFDSET, "IOFDSET"},
               {EV_TIMER, "TIMER"},     {EV_PERIODIC, "PERIODIC"}, {EV_SIGNAL, "SIGNAL"},
               {EV_CHILD, "CHILD"},     {EV_STAT, "STAT"},         {EV_IDLE, "IDLE"},
               {EV_PREPARE, "PREPARE"}, {EV_CHECK, "CHECK"},       {EV_EMBED, "EMBED"},
               {EV_FORK, "FORK"},       {EV_CLEANUP, "CLEANUP"},   {EV_ASYNC, "ASYNC"},
               {EV_CUSTOM, "CUSTOM"},   {EV_ERROR, "ERROR"}};
  static char text[256];
  size_t i;
  text[0] = '\0';
  for (i = 0; i < sizeof known / sizeof *known; ++i) {
    if (!(revents & known[i].bit)) continue;
    revents &= ~known[i].bit;
    strcat(text, text[0] ? "|" : "");
    strcat(text, known[i].name);
  }
  if (revents) sprintf(text + strlen(text), "|%x", (unsigned)revents);
  return text[0] ? text : "NONE";
}

#define PRINTER(type)                                        \
  void on_##type(Loop* loop, ev_##type* w, int revents) {    \
    (void)loop;                                              \
    say("    %s: %s", (const char*)w->data, names(revents)); \
  }
PRINTER(io)
PRINTER(timer)
PRINTER(periodic)
PRINTER(signal)
PRINTER(idle)
PRINTER(prepare)
PRINTER(check)
PRINTER(fork)
PRINTER(cleanup)
PRINTER(async)
PRINTER(embed)
PRINTER(stat)

struct ends make_pipe(void) {
  int fds[2];
  struct ends ends;
  need(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0, "pipe2");
  ends.read = fds[0];
  ends.write = fds[1];
  return ends;
}

struct ends make_pair(void) {
  int fds[2];
  struct ends ends;
  need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0, "socketpair");
  ends.read = fds[0];
  ends.write = fds[1];
  return ends;
}

void drain(int fd) {
  char bytes[256];
  while (read(fd, bytes, sizeof bytes) > 0) continue;
}

const struct section* const all_sections[] = {loop_sections,
                                              watcher_sections,
                                              io_sections,
                                              time_sections,
                                              clock_sections,
                                              process_sections,
                                              other_sections,
                                              event_sections,
                                              misuse_sections,
                                              random_sections,
                                              NULL};

const char* const library_function = "ev_run";
