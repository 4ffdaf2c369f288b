/* URIs, queries, fields and escaping of event2/http.h: known ones, and 20,000 random ones. The
   output of the original and of the drop-in must be equal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/util.h>

static void say(const char* name, const char* text) {
  printf("  %s: %s\n", name, text != NULL ? text : "(null)");
}

static void show(struct evhttp_uri* uri) {
  char joined[512];
  size_t limit;
  if (uri == NULL) {
    puts("  invalid");
    return;
  }
  say("scheme", evhttp_uri_get_scheme(uri));
  say("userinfo", evhttp_uri_get_userinfo(uri));
  say("host", evhttp_uri_get_host(uri));
  printf("  port: %d\n", evhttp_uri_get_port(uri));
  say("path", evhttp_uri_get_path(uri));
  say("query", evhttp_uri_get_query(uri));
  say("fragment", evhttp_uri_get_fragment(uri));
  say("joined", evhttp_uri_join(uri, joined, sizeof joined));
  for (limit = 0; limit < sizeof joined && evhttp_uri_join(uri, joined, limit) == NULL; ++limit)
    continue;
  printf("  size: %zu\n", limit);
}

static void parse(const char* text) {
  static const unsigned flags[] = {0, EVHTTP_URI_NONCONFORMANT};
  size_t i;
  for (i = 0; i < 2; ++i) {
    struct evhttp_uri* uri = evhttp_uri_parse_with_flags(text, flags[i]);
    printf("%s (%u)\n", text, flags[i]);
    show(uri);
    if (uri != NULL) evhttp_uri_free(uri);
  }
}

static void set(const char* text) {
  static int (*const setters[])(struct evhttp_uri*, const char*) = {
      evhttp_uri_set_scheme, evhttp_uri_set_userinfo, evhttp_uri_set_host,
      evhttp_uri_set_path,   evhttp_uri_set_query,    evhttp_uri_set_fragment};
  size_t i;
  unsigned flags;
  for (flags = 0; flags < 2; ++flags) {
    struct evhttp_uri* uri = evhttp_uri_new();
    evhttp_uri_set_flags(uri, flags);
    for (i = 0; i < sizeof setters / sizeof *setters; ++i) printf("%d ", setters[i](uri, text));
    show(uri);
    for (i = 0; i < sizeof setters / sizeof *setters; ++i) printf("%d ", setters[i](uri, NULL));
    show(uri);
    evhttp_uri_free(uri);
  }
}

static void query(const char* text) {
  struct evkeyvalq list;
  struct evkeyval* each;
  int whole;
  for (whole = 0; whole < 2; ++whole) {
    printf("%d\n", whole ? evhttp_parse_query(text, &list) : evhttp_parse_query_str(text, &list));
    TAILQ_FOREACH(each, &list, next) printf("  %s=%s\n", each->key, each->value);
    evhttp_clear_headers(&list);
  }
}

static void encode(const char* text) {
  size_t size = 0;
  char* all[7];
  size_t i;
  all[0] = evhttp_encode_uri(text);
  all[1] = evhttp_uriencode(text, -1, 1);
  all[2] = evhttp_uriencode(text, (ev_ssize_t)(strlen(text) / 2), 0);
  all[3] = evhttp_decode_uri(text);
  all[4] = evhttp_uridecode(text, 1, &size);
  all[5] = evhttp_uridecode(text, 0, NULL);
  all[6] = evhttp_htmlescape(text);
  printf("%zu\n", size);
  for (i = 0; i < 7; ++i) {
    say("text", all[i]);
    free(all[i]);
  }
}

static void fields(const char* name, const char* value) {
  struct evkeyvalq list;
  TAILQ_INIT(&list);
  printf("%d ", evhttp_add_header(&list, "First", "1"));
  printf("%d ", evhttp_add_header(&list, name, value));
  printf("%d\n", evhttp_add_header(&list, "first", "2"));
  say("found", evhttp_find_header(&list, name));
  say("first", evhttp_find_header(&list, "FIRST"));
  printf("%d ", evhttp_remove_header(&list, "fIRST"));
  say("second", evhttp_find_header(&list, "First"));
  printf("%d\n", evhttp_remove_header(&list, "missing"));
  evhttp_clear_headers(&list);
}

int main(void) {
  static const char* const uris[] = {"",
                                     "/",
                                     "//",
                                     "///",
                                     "a",
                                     "a:",
                                     ":",
                                     "a:b",
                                     "/a:b",
                                     "a/b:c",
                                     "http:",
                                     "http://",
                                     "http://a",
                                     "http://a/",
                                     "HTTP://A:80/b?c#d",
                                     "http://u:p@a:8080/",
                                     "http://u@v@a/",
                                     "http://@a/",
                                     "http://a:/",
                                     "http://a:65535/",
                                     "http://a:65536/",
                                     "http://a:99999999999/",
                                     "http://a:b/",
                                     "http://a:1:2/",
                                     "http://[::1]/",
                                     "http://[::1]:80/",
                                     "http://[::1",
                                     "http://[]/",
                                     "http://[v1.a:b]/",
                                     "http://[v.a]/",
                                     "http://[vg.a]/",
                                     "http://[V1.a]/",
                                     "http://[1.2.3.4]/",
                                     "http://a%20b/",
                                     "http://a%2/",
                                     "http://a%/",
                                     "http://a%zz/",
                                     "http://a b/",
                                     "http://a/b c",
                                     "/%",
                                     "/%2",
                                     "/%2f",
                                     "/%zz",
                                     "?",
                                     "#",
                                     "?#",
                                     "/?a?b",
                                     "/#a#b",
                                     "/#a?b",
                                     "/a[b]",
                                     "/a\\b",
                                     "/\x7f",
                                     "/\xff",
                                     "/a\"b",
                                     "/<a>",
                                     "//a//b",
                                     "a://b:c@d:1/e/../f;g=h?i=j&k=l#m",
                                     "mailto:user@example.org",
                                     "urn:a:b",
                                     "1a:b",
                                     "a+.-1://x",
                                     "//user@:80",
                                     "http://:80/",
                                     "http://a:080/",
                                     "http://a?b",
                                     "http://a#b",
                                     "http://a?b#c?d#e"};
  static const char* const values[] = {"",       "b",   "b\r\n c", "b\n\tc",
                                       "b\r\nc", "b\n", "\r\n",    "\n \n"};
  static const char alphabet[] = "aZ09-._~%%%2F:/?#[]@!$&'()*+,;=<>\" \\^`{|}\t\xc3";
  unsigned long long state = 1;
  size_t i;
  int round;
  for (i = 0; i < sizeof uris / sizeof *uris; ++i) {
    parse(uris[i]);
    set(uris[i]);
    query(uris[i]);
    encode(uris[i]);
    fields(uris[i], uris[i]);
  }
  for (i = 0; i < sizeof values / sizeof *values; ++i) {
    fields("name", values[i]);
    fields(values[i], "value");
  }
  say("nothing", evhttp_htmlescape(NULL));
  for (round = 0; round < 20000; ++round) {
    char text[24];
    size_t length;
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    length = (state >> 33) % (sizeof text - 1);
    for (i = 0; i < length; ++i) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      text[i] = alphabet[(state >> 33) % (sizeof alphabet - 1)];
    }
    text[length] = '\0';
    if (round % 2 == 0) parse(text);
    if (round % 8 == 1) set(text);
    if (round % 8 == 3) query(text);
    if (round % 8 == 5) encode(text);
    if (round % 8 == 7) fields(text, text);
  }
  return 0;
}
