// The methods of the BIO, which pass bytes between OpenSSL and a filter.
#include "tls/bio.h"

#include <atomic>
#include <cerrno>
#include <span>

#include "tls/filter.h"

namespace tambour::tls::detail {

int Bio::read(BIO* bio, char* into, std::size_t size, std::size_t* got) noexcept {
  auto& filter = *static_cast<Filter*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  *got = 0;
  const std::int32_t answer = filter.receive(std::as_writable_bytes(std::span(into, size)));
  if (answer == -EAGAIN) BIO_set_retry_read(bio);
  if (answer <= 0) return answer == 0 ? 0 : -1;
  *got = static_cast<std::size_t>(answer);
  return 1;
}

int Bio::write(BIO* bio, const char* from, std::size_t size, std::size_t* written) noexcept {
  auto& filter = *static_cast<Filter*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  filter.collect(std::as_bytes(std::span(from, size)));
  *written = size;
  return 1;
}

long Bio::control(BIO* bio, int command, long /*number*/, void* /*pointer*/) noexcept {
  const auto& filter = *static_cast<Filter*>(BIO_get_data(bio));
  switch (command) {
    case BIO_CTRL_FLUSH:
      return 1;
    case BIO_CTRL_EOF:
      return filter.socket_ended_ ? 1 : 0;
    default:
      return 0;
  }
}

BIO_METHOD* Bio::make_method() noexcept {
  BIO_METHOD* const method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "tambour");
  if (method == nullptr) return nullptr;
  if (BIO_meth_set_read_ex(method, &Bio::read) == 1 &&
      BIO_meth_set_write_ex(method, &Bio::write) == 1 &&
      BIO_meth_set_ctrl(method, &Bio::control) == 1)
    return method;
  BIO_meth_free(method);
  return nullptr;
}

BIO* Bio::create(Filter& filter) noexcept {
  // Never freed: OpenSSL may use it as long as there are connections, and static ones may exist at
  // the end of the process. If memory runs out for it, a later call tries again.
  static std::atomic<BIO_METHOD*> shared{nullptr};
  BIO_METHOD* method = shared.load(std::memory_order_acquire);
  if (method == nullptr) {
    BIO_METHOD* const created = make_method();
    if (created == nullptr) return nullptr;
    if (shared.compare_exchange_strong(method, created, std::memory_order_acq_rel)) {
      method = created;
    } else {
      BIO_meth_free(created);
    }
  }
  BIO* const bio = BIO_new(method);
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, &filter);
  BIO_set_init(bio, 1);
  return bio;
}

}  // namespace tambour::tls::detail
