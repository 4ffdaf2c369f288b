/* The trace of a walk. */
#include "walk/trace.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  putchar('\n');
  /* The next line may be written by another process, and the section may end with a crash. */
  fflush(stdout);
}

void need(int holds, const char* text) {
  if (holds) return;
  fprintf(stderr, "walk: %s failed: %s\n", text, strerror(errno));
  exit(3);
}

void put(int fd, const char* bytes) {
  need(write(fd, bytes, strlen(bytes)) == (ssize_t)strlen(bytes), "write");
}
