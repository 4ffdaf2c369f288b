// Owners of OpenSSL's objects. Only this layer includes OpenSSL's headers.
#pragma once

#include <memory>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <tambour/detail/namespaces.h>

namespace tambour::tls::detail {

template <auto release>
struct Release {
  template <class T>
  void operator()(T* object) const noexcept {
    release(object);
  }
};

inline void release_stack(STACK_OF(X509) * stack) noexcept { sk_X509_pop_free(stack, X509_free); }
inline void release_names(GENERAL_NAMES* names) noexcept { GENERAL_NAMES_free(names); }
inline void release_text(char* text) noexcept { OPENSSL_free(text); }

using BioPointer = std::unique_ptr<BIO, Release<BIO_free>>;
using CertificatePointer = std::unique_ptr<X509, Release<X509_free>>;
using ChainPointer = std::unique_ptr<STACK_OF(X509), Release<release_stack>>;
using CipherPointer = std::unique_ptr<EVP_CIPHER, Release<EVP_CIPHER_free>>;
using ContextPointer = std::unique_ptr<SSL_CTX, Release<SSL_CTX_free>>;
using DigestPointer = std::unique_ptr<EVP_MD_CTX, Release<EVP_MD_CTX_free>>;
using KeyPointer = std::unique_ptr<EVP_PKEY, Release<EVP_PKEY_free>>;
using NamesPointer = std::unique_ptr<GENERAL_NAMES, Release<release_names>>;
using SessionPointer = std::unique_ptr<SSL_SESSION, Release<SSL_SESSION_free>>;
using SslPointer = std::unique_ptr<SSL, Release<SSL_free>>;
using StorePointer = std::unique_ptr<X509_STORE, Release<X509_STORE_free>>;
using TextPointer = std::unique_ptr<char, Release<release_text>>;

}  // namespace tambour::tls::detail
