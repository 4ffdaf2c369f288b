/* The main function of the walks, and what they share. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "walk_bufferevent.h"

void say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  putchar('\n');
  /* The section may end with a crash. */
  fflush(stdout);
}

void need(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "walk: %s failed: %s\n", what, strerror(errno));
  exit(3);
}

void show(const char* name, struct evbuffer* buffer) {
  enum { shown_max = 60 };
  const size_t length = evbuffer_get_length(buffer);
  const size_t shown = length < shown_max ? length : shown_max;
  char bytes[shown_max], text[4 * shown_max + 1];
  size_t i, at = 0;
  struct evbuffer_iovec extents[shown_max];
  int count = evbuffer_peek(buffer, (ev_ssize_t)shown, NULL, extents, shown_max), n;
  for (n = 0, i = 0; n < count && n < shown_max && i < shown; ++n) {
    size_t part = extents[n].iov_len < shown - i ? extents[n].iov_len : shown - i;
    if (part != 0) memcpy(bytes + i, extents[n].iov_base, part);
    i += part;
  }
  for (i = 0; i < shown; ++i)
    at += (size_t)sprintf(text + at, isprint((unsigned char)bytes[i]) ? "%c" : "\\%02x",
                          (unsigned char)bytes[i]);
  text[at] = '\0';
  say("  %s: %zu [%s%s]", name, length, text, length > shown ? "..." : "");
}

static char referred[] = "referred";

void refer(struct evbuffer* buffer, const char* bytes) {
  need(evbuffer_add_reference(buffer, bytes, strlen(bytes), NULL, referred) == 0, "add_reference");
}

struct evbuffer* make(const char* bytes) {
  struct evbuffer* buffer = evbuffer_new();
  need(buffer != NULL, "evbuffer_new");
  need(evbuffer_add(buffer, bytes, strlen(bytes)) == 0, "evbuffer_add");
  return buffer;
}

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
    need(dladdr(dlsym(RTLD_DEFAULT, "evbuffer_new"), &info) != 0, "dladdr");
    puts(info.dli_fname);
    return 0;
  }
  for (i = 0; all_sections[i] != NULL; ++i) {
    for (section = all_sections[i]; section->name; ++section) {
      if (argc > 1 && strcmp(argv[1], section->name) != 0) continue;
      ++found;
      failed |= walk(section);
    }
  }
  need(found > 0, "finding the section");
  return failed;
}
