// The functions of event2/bufferevent_ssl.h.

#include <new>

#include <event2/bufferevent_ssl.h>
#include <openssl/ssl.h>

#include "libevent/bufferevent/bufferevent.h"
#include "libevent/openssl/bufferevent_bio.h"
#include "libevent/openssl/bufferevent_openssl.h"

using tambour::libevent::BevLocked;
using tambour::libevent::of;
using tambour::libevent::Openssl;

extern "C" const bufferevent_ops bufferevent_ops_openssl = {"ssl"};

namespace {

bufferevent* make(event_base* base, bufferevent* below, int fd, SSL* ssl,
                  bufferevent_ssl_state state, int options) noexcept {
  void* const memory = event_mm_calloc_(1, sizeof(Openssl));
  if (memory == nullptr) return nullptr;
  auto* const created = new (memory) Openssl(ssl);
  if (bufferevent_init_common_(created, base, options & ~BEV_OPT_THREADSAFE) != 0) {
    event_mm_free_(memory);
    return nullptr;
  }
  if (created->open(below, fd, state, options)) return created;
  created->abandon();
  return nullptr;
}

bufferevent* made_or_free(bufferevent* created, SSL* ssl, int options) noexcept {
  if (created == nullptr && (options & BEV_OPT_CLOSE_ON_FREE) != 0) SSL_free(ssl);
  return created;
}

Openssl* as_openssl(bufferevent* bev) noexcept {
  return bev->be_ops == &bufferevent_ops_openssl ? static_cast<Openssl*>(&of(bev)) : nullptr;
}

}  // namespace

bufferevent* bufferevent_openssl_filter_new(event_base* base, bufferevent* underlying, SSL* ssl,
                                            bufferevent_ssl_state state, int options) {
  bufferevent* created = nullptr;
  if (underlying != nullptr) created = make(base, underlying, -1, ssl, state, options);
  return made_or_free(created, ssl, options);
}

bufferevent* bufferevent_openssl_socket_new(event_base* base, evutil_socket_t fd, SSL* ssl,
                                            bufferevent_ssl_state state, int options) {
  const int known = tambour::libevent::socket_of(ssl);
  // Two different descriptors are a mistake of the caller.
  if (known >= 0 && fd >= 0 && known != fd) return made_or_free(nullptr, ssl, options);
  if (fd < 0) fd = known;
  if (known >= 0 && !tambour::libevent::uses_plain_socket(ssl)) {
    // A chain of the caller's own.
    BIO_set_close(SSL_get_wbio(ssl), BIO_NOCLOSE);
  } else if (fd >= 0) {
    if (known >= 0) BIO_set_close(SSL_get_wbio(ssl), BIO_NOCLOSE);
    if (!tambour::libevent::use_socket(ssl, fd)) return made_or_free(nullptr, ssl, options);
  }
  return made_or_free(make(base, nullptr, fd, ssl, state, options), ssl, options);
}

SSL* bufferevent_openssl_get_ssl(bufferevent* bufev) {
  Openssl* const self = as_openssl(bufev);
  return self != nullptr ? self->ssl() : nullptr;
}

int bufferevent_ssl_renegotiate(bufferevent* bev) {
  Openssl* const self = as_openssl(bev);
  return self != nullptr ? self->renegotiate() : -1;
}

int bufferevent_openssl_get_allow_dirty_shutdown(bufferevent* bev) {
  const BevLocked locked(of(bev));
  const Openssl* const self = as_openssl(bev);
  return self != nullptr ? static_cast<int>(self->allow_dirty_shutdown) : -1;
}

void bufferevent_openssl_set_allow_dirty_shutdown(bufferevent* bev, int allow_dirty_shutdown) {
  const BevLocked locked(of(bev));
  if (Openssl* const self = as_openssl(bev); self != nullptr)
    self->allow_dirty_shutdown = allow_dirty_shutdown != 0;
}

unsigned long bufferevent_get_openssl_error(bufferevent* bev) {
  const BevLocked locked(of(bev));
  Openssl* const self = as_openssl(bev);
  return self != nullptr ? self->take_error() : 0;
}
