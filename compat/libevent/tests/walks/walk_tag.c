/* Tagged values: known ones, and random ones that are damaged. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <event2/tag.h>

#include "walk_buffer.h"

/* Exported, but in no header. */
int evtag_decode_int(ev_uint32_t* number, struct evbuffer* buffer);
int evtag_decode_int64(ev_uint64_t* number, struct evbuffer* buffer);
int evtag_encode_tag(struct evbuffer* buffer, ev_uint32_t tag);
int evtag_decode_tag(ev_uint32_t* tag, struct evbuffer* buffer);

static void known(void) {
  static const ev_uint64_t numbers[] = {0,   1,          15,          16,        255,
                                        256, 0xffffffff, 0x100000000, UINT64_MAX};
  static const ev_uint32_t tags[] = {0, 1, 127, 128, 16383, 16384, 0xffffffff};
  struct evbuffer *b = evbuffer_new(), *other = make("content");
  struct timeval time = {1234567, 890};
  ev_uint32_t tag = 0, length = 0, number = 0;
  ev_uint64_t large = 0;
  char fixed[5], *text = NULL;
  size_t i;
  evtag_init();
  for (i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
    evtag_encode_int64(b, numbers[i]);
    show("integer", b);
    SAY(evtag_decode_int64(&large, b));
    SAY(large);
    evtag_encode_int(b, (ev_uint32_t)numbers[i]);
    show("integer", b);
    SAY(evtag_decode_int(&number, b));
    SAY(number);
  }
  for (i = 0; i < sizeof tags / sizeof *tags; ++i) {
    SAY(evtag_encode_tag(b, tags[i]));
    show("tag", b);
    SAY(evtag_peek(b, &tag));
    SAY(evtag_decode_tag(&tag, b));
    SAY(tag);
  }
  SAY(evtag_encode_tag(NULL, 300));
  evtag_marshal_string(b, 1, "text");
  evtag_marshal_int(b, 2, 77);
  evtag_marshal_int64(b, 3, (ev_uint64_t)77 << 40);
  evtag_marshal_timeval(b, 4, &time);
  evtag_marshal(b, 5, "fixed", 5);
  evtag_marshal_buffer(b, 6, other);
  evtag_marshal_buffer(b, 7, other);
  show("marshalled", b);
  SAY(evtag_payload_length(b, &length));
  SAY(length);
  SAY(evtag_peek_length(b, &length));
  SAY(length);
  SAY(evtag_unmarshal_string(b, 1, &text));
  say("  %s", text);
  free(text);
  SAY(evtag_unmarshal_int(b, 2, &number));
  SAY(evtag_unmarshal_int64(b, 3, &large));
  say("  %u %llu", number, (unsigned long long)large);
  time.tv_sec = time.tv_usec = 0;
  SAY(evtag_unmarshal_timeval(b, 4, &time));
  say("  %ld %ld", (long)time.tv_sec, (long)time.tv_usec);
  SAY(evtag_unmarshal_fixed(b, 5, fixed, sizeof fixed));
  SAY(evtag_unmarshal(b, &tag, other));
  show("unmarshalled", other);
  SAY(evtag_consume(b));
  SAY(evtag_consume(b));
  evtag_marshal_int(b, 8, 1);
  SAY(evtag_unmarshal_int(b, 9, &number));
  show("another tag", b);
  evbuffer_free(b);
  evbuffer_free(other);
}

static uint64_t state = 88172645463325252U, digest = 14695981039346656037U;

static uint32_t next(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)(state >> 20);
}
static void mix(uint64_t value) { digest = (digest ^ value) * 1099511628211U; }
static void mix_bytes(struct evbuffer* b) {
  const size_t size = evbuffer_get_length(b);
  const unsigned char* bytes = evbuffer_pullup(b, -1);
  size_t i;
  mix(size);
  for (i = 0; i < size; ++i) mix(bytes[i]);
}

static void encode(struct evbuffer* b, ev_uint32_t tag, ev_uint64_t number) {
  struct timeval time = {(time_t)(number & 0xffffffff), next() % 1000000};
  unsigned i;
  switch (next() % 8) {
    case 0:
      evtag_marshal_int(b, tag, (ev_uint32_t)number);
      break;
    case 1:
      evtag_marshal_int64(b, tag, number);
      break;
    case 2:
      evtag_marshal_string(b, tag, "some text");
      break;
    case 3:
      evtag_marshal_timeval(b, tag, &time);
      break;
    case 4:
      evtag_marshal(b, tag, "abcdef", 6);
      break;
    case 5:
      evtag_encode_int64(b, number);
      break;
    case 6:
      evtag_encode_tag(b, tag);
      break;
    default:
      for (i = next() % 12; i > 0; --i) {
        const unsigned char byte = (unsigned char)next();
        evbuffer_add(b, &byte, 1);
      }
  }
  mix_bytes(b);
  if (next() % 4 == 0 && evbuffer_get_length(b) > 0)
    evbuffer_pullup(b, -1)[next() % evbuffer_get_length(b)] ^= (unsigned char)(1U << next() % 8);
}

static int decode(struct evbuffer* b, struct evbuffer* other, ev_uint32_t tag) {
  ev_uint32_t number = 7;
  ev_uint64_t large = 7;
  struct timeval time = {0, 0};
  char* text = NULL;
  char fixed[6];
  int result = 0;
  switch (next() % 12) {
    case 0:
      result = evtag_unmarshal_int(b, tag, &number);
      break;
    case 1:
      result = evtag_unmarshal_int64(b, tag, &large);
      break;
    case 2:
      result = evtag_unmarshal_string(b, tag, &text);
      if (result == 0) mix(strlen(text));
      if (result == 0) free(text);
      break;
    case 3:
      result = evtag_unmarshal_timeval(b, tag, &time);
      break;
    case 4:
      result = evtag_unmarshal_fixed(b, tag, fixed, sizeof fixed);
      break;
    case 5:
      result = evtag_decode_int(&number, b);
      break;
    case 6:
      result = evtag_decode_int64(&large, b);
      break;
    case 7:
      result = evtag_decode_tag(&number, b);
      break;
    case 8:
      result = evtag_peek(b, &number);
      break;
    case 9:
      result = evtag_peek_length(b, &number);
      break;
    case 10:
      result = evtag_payload_length(b, &number);
      break;
    default:
      result = evtag_unmarshal(b, &number, other);
  }
  if (result < 0) return result;
  mix(number);
  mix(large);
  mix((uint64_t)time.tv_sec);
  mix((uint64_t)time.tv_usec);
  return result;
}

static void damaged(void) {
  int i;
  for (i = 1; i <= 100000; ++i) {
    struct evbuffer *b = evbuffer_new(), *other = evbuffer_new();
    const ev_uint32_t tag = next() >> next() % 32;
    const ev_uint64_t number = ((ev_uint64_t)next() << 32 | next()) >> next() % 64;
    encode(b, tag, number);
    mix((uint64_t)decode(b, other, next() % 4 ? tag : tag + 1));
    mix_bytes(b);
    mix_bytes(other);
    evbuffer_free(b);
    evbuffer_free(other);
    if (i % 1000 == 0) say("  after %d: %llx", i, (unsigned long long)digest);
  }
}

const struct section tag_sections[] = {
    {"tagged values", known}, {"damaged values", damaged}, {NULL, NULL}};
