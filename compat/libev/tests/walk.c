/* Runs the sections of the walk, and prints what happens in them. */
#define _GNU_SOURCE
#include "walk.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

void say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  putchar('\n');
  /* The next line may be written by another process. */
  fflush(stdout);
}

void need(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "walk: %s failed: %s\n", what, strerror(errno));
  exit(3);
}

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

void put(int fd, const char* bytes) {
  need(write(fd, bytes, strlen(bytes)) == (ssize_t)strlen(bytes), "write");
}

void drain(int fd) {
  char bytes[256];
  while (read(fd, bytes, sizeof bytes) > 0) continue;
}

static const struct section* const all[] = {
    loop_sections,    watcher_sections, io_sections,    time_sections,   clock_sections,
    process_sections, other_sections,   event_sections, misuse_sections, random_sections};

/* Each section runs in its own process, with its own default loop and without the descriptors of
   other sections. */
static int walk(const struct section* section) {
  int status = -1;
  pid_t pid;
  say("%s", section->name);
  pid = fork();
  need(pid >= 0, "fork");
  if (pid == 0) {
    alarm(30);
    section->walk();
    fflush(stdout);
    _exit(0);
  }
  need(waitpid(pid, &status, 0) == pid, "waitpid");
  if (status != 0) say("%s: ended with status %x", section->name, (unsigned)status);
  return status != 0;
}

int main(int argc, char** argv) {
  size_t i;
  int failed = 0, found = 0;
  const struct section* section;
  if (argc > 1 && strcmp(argv[1], "--library") == 0) {
    Dl_info info;
    need(dladdr(dlsym(RTLD_DEFAULT, "ev_run"), &info) != 0, "dladdr");
    puts(info.dli_fname);
    return 0;
  }
  for (i = 0; i < sizeof all / sizeof *all; ++i) {
    for (section = all[i]; section->name; ++section) {
      if (argc > 1 && strcmp(argv[1], section->name) != 0) continue;
      ++found;
      failed |= walk(section);
    }
  }
  need(found > 0, "finding the section");
  return failed;
}
