/* File segments, and reading from and writing to file descriptors. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "walk_buffer.h"

static int make_file(const char* bytes) {
  char name[] = "/tmp/walk_buffer.XXXXXX";
  int fd = mkstemp(name);
  need(fd >= 0, "mkstemp");
  unlink(name);
  need(write(fd, bytes, strlen(bytes)) == (ssize_t)strlen(bytes), "write");
  return fd;
}

static int is_open(int fd) { return fcntl(fd, F_GETFD) != -1; }

static void make_pair(int fds[2]) {
  need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0, "socketpair");
}

static void say_read(int fd) {
  char bytes[200];
  ssize_t n = read(fd, bytes, sizeof bytes);
  say("  read: %.*s", n > 0 ? (int)n : 0, bytes);
}

static void cleaned(struct evbuffer_file_segment const* segment, int flags, void* name) {
  (void)segment;
  say("    %s cleaned up, flags %x", (const char*)name, (unsigned)flags);
}

static const char text[] = "0123456789abcdefghijklmnopqrstuvwxyz";
static const unsigned ways[] = {0, EVBUF_FS_DISABLE_SENDFILE,
                                EVBUF_FS_DISABLE_SENDFILE | EVBUF_FS_DISABLE_MMAP,
                                EVBUF_FS_DISABLE_LOCKING | EVBUF_FS_CLOSE_ON_FREE};

static void segments(void) {
  size_t way, drains;
  for (way = 0; way < sizeof ways / sizeof *ways; ++way) {
    for (drains = 0; drains <= 1; ++drains) {
      int fds[2], fd = make_file(text);
      struct evbuffer *b = evbuffer_new(), *other = evbuffer_new();
      struct evbuffer_file_segment* segment = evbuffer_file_segment_new(fd, 3, 20, ways[way]);
      say("  flags %x, drains %d", ways[way], (int)drains);
      make_pair(fds);
      if (drains) evbuffer_set_flags(b, EVBUFFER_FLAG_DRAINS_TO_FD);
      SAY(segment != NULL);
      evbuffer_file_segment_add_cleanup_cb(segment, cleaned, "segment");
      SAY(evbuffer_add(b, "<", 1));
      SAY(evbuffer_add_file_segment(b, segment, 0, -1));
      SAY(evbuffer_add(b, "|", 1));
      SAY(evbuffer_add_file_segment(b, segment, 5, 4));
      SAY(evbuffer_add_file_segment(other, segment, 19, 1));
      SAY(evbuffer_add(b, ">", 1));
      SAY(evbuffer_get_length(b));
      SAY(evbuffer_add_buffer_reference(other, b));
      while (evbuffer_get_length(b) > 0 && evbuffer_write(b, fds[0]) >= 0) continue;
      say_read(fds[1]);
      show("other", other);
      say("  freed");
      evbuffer_file_segment_free(segment);
      SAY(is_open(fd));
      evbuffer_drain(other, 10);
      SAY(is_open(fd));
      evbuffer_free(b);
      evbuffer_free(other);
      close(fd);
      close(fds[0]);
      close(fds[1]);
    }
  }
}

static void refused_segments(void) {
  int fd = make_file(text), other = make_file("");
  struct evbuffer* b = evbuffer_new();
  struct evbuffer_file_segment* segment;
  SAY(evbuffer_file_segment_new(fd, -1, 5, 0) == NULL);
  SAY(evbuffer_file_segment_new(fd, 0, -2, 0) == NULL);
  SAY(evbuffer_file_segment_new(fd, 5, EV_SSIZE_MAX, 0) == NULL);
  SAY(evbuffer_file_segment_new(fd, EV_SSIZE_MAX, 5, 0) == NULL);
  SAY(evbuffer_file_segment_new(-1, 0, -1, 0) == NULL);
  SAY(evbuffer_file_segment_new(-1, 0, 5, EVBUF_FS_DISABLE_SENDFILE) == NULL);
  /* More than there is. */
  SAY(evbuffer_file_segment_new(fd, 0, 1000, EVBUF_FS_DISABLE_SENDFILE | EVBUF_FS_DISABLE_MMAP) ==
      NULL);
  SAY(is_open(fd));
  /* The segment is freed when it is refused. */
  segment = evbuffer_file_segment_new(fd, 10, 10, 0);
  evbuffer_file_segment_add_cleanup_cb(segment, cleaned, "longer");
  SAY(evbuffer_add_file_segment(b, segment, 5, 6));
  segment = evbuffer_file_segment_new(fd, 10, 10, 0);
  evbuffer_file_segment_add_cleanup_cb(segment, cleaned, "behind");
  SAY(evbuffer_add_file_segment(b, segment, 11, -1));
  segment = evbuffer_file_segment_new(fd, 10, 10, 0);
  evbuffer_file_segment_add_cleanup_cb(segment, cleaned, "frozen");
  evbuffer_freeze(b, 0);
  SAY(evbuffer_add_file_segment(b, segment, 0, -1));
  evbuffer_unfreeze(b, 0);
  SAY(evbuffer_add_file(b, -1, 0, 10));
  SAY(evbuffer_add_file(b, fd, -1, 10));
  SAY(is_open(fd));
  SAY(evbuffer_get_length(b));
  SAY(evbuffer_add_file(b, fd, 30, -1) == 0 || 1);
  evbuffer_free(b);
  close(other);
}

static void whole_files(void) {
  size_t drains;
  for (drains = 0; drains <= 1; ++drains) {
    int fds[2], fd = make_file(text);
    struct evbuffer* b = evbuffer_new();
    make_pair(fds);
    if (drains) evbuffer_set_flags(b, EVBUFFER_FLAG_DRAINS_TO_FD);
    SAY(evbuffer_add_file(b, fd, 0, -1));
    SAY(evbuffer_get_length(b));
    SAY(evbuffer_write_atmost(b, fds[0], -1));
    say_read(fds[1]);
    SAY(is_open(fd));
    fd = make_file(text);
    SAY(evbuffer_add_file(b, fd, 10, 5));
    SAY(evbuffer_write(b, fds[0]));
    say_read(fds[1]);
    fd = make_file(text);
    SAY(evbuffer_add_file(b, fd, 10, 26));
    evbuffer_free(b);
    SAY(is_open(fd));
    close(fds[0]);
    close(fds[1]);
  }
}

static void transfer(void) {
  int fds[2];
  struct evbuffer *b = make("0123456789"), *in = evbuffer_new();
  make_pair(fds);
  SAY(evbuffer_write_atmost(b, fds[0], 0));
  SAY(evbuffer_write_atmost(b, fds[0], 4));
  show("b", b);
  SAY(evbuffer_write_atmost(b, fds[0], 100));
  SAY(evbuffer_write(b, fds[0]));
  SAY(evbuffer_read(in, fds[1], 0));
  SAY(evbuffer_read(in, fds[1], 3));
  show("in", in);
  SAY(evbuffer_read(in, fds[1], 100));
  show("in", in);
  SAY(evbuffer_read(in, fds[1], 100));
  SAY(errno == EAGAIN);
  SAY(evbuffer_read(in, fds[1], -1));
  SAY(errno == EAGAIN);
  SAY(evbuffer_add_buffer(b, in));
  refer(b, "referred");
  SAY(evbuffer_prepend(b, ">", 1));
  SAY(evbuffer_write(b, fds[0]));
  SAY(evbuffer_read(in, fds[1], -1));
  show("in", in);
  SAY(evbuffer_add(b, "x", 1));
  close(fds[0]);
  SAY(evbuffer_read(in, fds[1], -1));
  SAY(evbuffer_read(in, fds[1], 10));
  SAY(evbuffer_write(b, fds[0]));
  SAY(errno == EBADF);
  SAY(evbuffer_read(b, fds[0], 10));
  SAY(errno == EBADF);
  SAY(evbuffer_read(b, -1, -1));
  show("b", b);
  show("in", in);
  close(fds[1]);
  evbuffer_free(b);
  evbuffer_free(in);
}

static void full(void) {
  static char bytes[4096];
  int fds[2], i;
  size_t sent = 0, received = 0;
  struct evbuffer *b = evbuffer_new(), *in = evbuffer_new();
  make_pair(fds);
  for (i = 0; i < 1000; ++i) {
    memset(bytes, 'a' + i % 26, sizeof bytes);
    evbuffer_add(b, bytes, sizeof bytes);
  }
  while (received < 1000 * sizeof bytes) {
    int n;
    while ((n = evbuffer_write(b, fds[0])) > 0) sent += (size_t)n;
    if (evbuffer_get_length(b) > 0 && errno != EAGAIN) say("  write failed");
    while ((n = evbuffer_read(in, fds[1], -1)) > 0) received += (size_t)n;
    if (errno != EAGAIN) say("  read failed");
    if (received != sent) say("  %zu of %zu", received, sent);
  }
  for (i = 0; i < 1000; ++i) {
    memset(bytes, 'a' + i % 26, sizeof bytes);
    if (memcmp(evbuffer_pullup(in, sizeof bytes), bytes, sizeof bytes) != 0)
      say("  other bytes at %d", i);
    evbuffer_drain(in, sizeof bytes);
  }
  SAY(received);
  evbuffer_free(b);
  evbuffer_free(in);
}

const struct section file_sections[] = {
    {"segments", segments},       {"refused segments", refused_segments},
    {"whole files", whole_files}, {"transfer", transfer},
    {"full socket", full},        {NULL, NULL}};
