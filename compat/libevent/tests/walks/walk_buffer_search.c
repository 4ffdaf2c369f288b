/* Positions, searches and lines. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "walk_buffer.h"

static void positions(void) {
  struct evbuffer* b = evbuffer_new();
  struct evbuffer_ptr at;
  size_t i;
  SAY(evbuffer_ptr_set(b, &at, 0, EVBUFFER_PTR_SET));
  SAY(at.pos);
  SAY(evbuffer_ptr_set(b, &at, 1, EVBUFFER_PTR_SET));
  SAY(at.pos);
  refer(b, "one");
  refer(b, "two");
  refer(b, "three");
  for (i = 0; i <= 12; ++i) {
    say("  set %zu: %d, at %zd", i, evbuffer_ptr_set(b, &at, i, EVBUFFER_PTR_SET), at.pos);
    say("  byte: %d", evbuffer_peek(b, 1, &at, NULL, 0));
  }
  SAY(evbuffer_ptr_set(b, &at, 2, EVBUFFER_PTR_SET));
  for (i = 0; i < 5; ++i) {
    say("  add %zu: %d, at %zd", i, evbuffer_ptr_set(b, &at, i, EVBUFFER_PTR_ADD), at.pos);
  }
  SAY(evbuffer_ptr_set(b, &at, 4, EVBUFFER_PTR_SET));
  SAY(evbuffer_ptr_set(b, &at, 7, EVBUFFER_PTR_ADD));
  SAY(at.pos);
  SAY(evbuffer_ptr_set(b, &at, 0, EVBUFFER_PTR_ADD));
  SAY(at.pos);
  SAY(evbuffer_ptr_set(b, &at, 4, EVBUFFER_PTR_SET));
  SAY(evbuffer_ptr_set(b, &at, SIZE_MAX, EVBUFFER_PTR_ADD));
  SAY(at.pos);
  SAY(evbuffer_ptr_set(b, &at, SIZE_MAX - 4, EVBUFFER_PTR_ADD));
  SAY(at.pos);
  SAY(evbuffer_ptr_set(b, &at, 1, EVBUFFER_PTR_ADD));
  SAY(evbuffer_ptr_set(b, &at, SIZE_MAX, EVBUFFER_PTR_SET));
  SAY(at.pos);
  evbuffer_free(b);
}

static void search_all(struct evbuffer* b, const char* what, size_t size) {
  struct evbuffer_ptr start, end, at;
  size_t i, j;
  const size_t length = evbuffer_get_length(b);
  say("  %.*s: %zd", (int)size, what, evbuffer_search(b, what, size, NULL).pos);
  for (i = 0; i <= length; i += 2) {
    evbuffer_ptr_set(b, &start, i, EVBUFFER_PTR_SET);
    say("    from %zu: %zd", i, evbuffer_search(b, what, size, &start).pos);
    for (j = 0; j <= length; j += 5) {
      evbuffer_ptr_set(b, &end, j, EVBUFFER_PTR_SET);
      at = evbuffer_search_range(b, what, size, &start, &end);
      if (at.pos >= 0) say("    from %zu to %zu: %zd", i, j, at.pos);
    }
  }
}

static void search(void) {
  struct evbuffer* b = evbuffer_new();
  struct evbuffer_ptr missing;
  static const char* const words[] = {"a",     "b", "c",  "ab", "ba",     "abab", "ababc",
                                      "abcab", "x", "xy", "yz", "abcabx", "z"};
  size_t i;
  SAY(evbuffer_search(b, "a", 1, NULL).pos);
  SAY(evbuffer_search(b, "a", 0, NULL).pos);
  refer(b, "ab");
  refer(b, "a");
  refer(b, "bcab");
  refer(b, "xyz");
  for (i = 0; i < sizeof words / sizeof *words; ++i) search_all(b, words[i], strlen(words[i]));
  search_all(b, "", 0);
  SAY(evbuffer_search(b, "a", SIZE_MAX, NULL).pos);
  SAY(evbuffer_search(b, "a", (size_t)EV_SSIZE_MAX + 1, NULL).pos);
  missing = evbuffer_search(b, "missing", 7, NULL);
  SAY(missing.pos);
  SAY(evbuffer_search_range(b, "a", 1, NULL, &missing).pos);
  SAY(evbuffer_search(b, "a", 1, &missing).pos);
  SAY(evbuffer_find(b, (const unsigned char*)"missing", 7) == NULL);
  SAY(evbuffer_find(b, (const unsigned char*)"", 0) == NULL);
  say("  %.5s", (char*)evbuffer_find(b, (const unsigned char*)"bc", 2));
  SAY(evbuffer_get_contiguous_space(b));
  evbuffer_free(b);
}

static const enum evbuffer_eol_style styles[] = {
    EVBUFFER_EOL_ANY, EVBUFFER_EOL_CRLF, EVBUFFER_EOL_CRLF_STRICT,
    EVBUFFER_EOL_LF,  EVBUFFER_EOL_NUL,  (enum evbuffer_eol_style)7};

/* The same bytes in chains of each size. */
static struct evbuffer* divide(const char* bytes, size_t size, size_t part) {
  struct evbuffer* b = evbuffer_new();
  size_t at;
  for (at = 0; at < size; at += part)
    evbuffer_add_reference(b, bytes + at, size - at < part ? size - at : part, NULL, NULL);
  return b;
}

static void line_ends(void) {
  static const char bytes[] = "\none\r\ntwo\n\rthree\0four\r\r\nfive\n\n\rsix\r";
  const size_t size = sizeof bytes - 1;
  size_t part, style, from;
  for (style = 0; style < sizeof styles / sizeof *styles; ++style) {
    for (part = 1; part <= size; part += 3) {
      struct evbuffer* b = divide(bytes, size, part);
      for (from = 0; from <= size; from += 3) {
        struct evbuffer_ptr start, at;
        size_t eol = 99;
        evbuffer_ptr_set(b, &start, from, EVBUFFER_PTR_SET);
        at = evbuffer_search_eol(b, &start, &eol, styles[style]);
        say("  style %d, chains of %zu, from %zu: %zd, %zu", (int)styles[style], part, from, at.pos,
            eol);
      }
      SAY(evbuffer_search_eol(b, NULL, NULL, styles[style]).pos);
      evbuffer_free(b);
    }
  }
}

static void lines(void) {
  static const char bytes[] = "\none\r\ntwo\n\rthree\0four\r\r\nfive\n\n\rsix\r";
  size_t style, part, n;
  char* line;
  for (style = 0; style < sizeof styles / sizeof *styles; ++style) {
    for (part = 1; part < sizeof bytes; part += 7) {
      struct evbuffer* b = divide(bytes, sizeof bytes - 1, part);
      n = 99;
      while ((line = evbuffer_readln(b, &n, styles[style])) != NULL) {
        say("  style %d: %zu %s", (int)styles[style], n, line);
        free(line);
      }
      say("  style %d: %zu", (int)styles[style], n);
      show("rest", b);
      evbuffer_free(b);
    }
  }
  {
    struct evbuffer* b = make("first\r\n\r\nsecond");
    line = evbuffer_readline(b);
    say("  %s", line);
    free(line);
    SAY(evbuffer_readline(b) == NULL);
    evbuffer_free(b);
  }
}

const struct section search_sections[] = {{"positions", positions},
                                          {"search", search},
                                          {"line ends", line_ends},
                                          {"lines", lines},
                                          {NULL, NULL}};
