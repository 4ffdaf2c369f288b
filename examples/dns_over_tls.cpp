// Looks up a host by DNS over TLS. The server has to prove its name:
//
//   build/examples/dns_over_tls 9.9.9.9 dns.quad9.net example.org
//
// Without arguments, looks up "localhost", for which no server is asked.
#include <cstdio>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;

Task<> print_addresses(dns::Resolver& resolver, std::string host, int& status) {
  const auto found = co_await resolver.resolve(host, 0);
  if (!found) {
    std::fprintf(stderr, "%s: %s\n", host.c_str(), found.error().message().c_str());
    co_return;
  }
  for (const Endpoint& endpoint : *found) std::printf("%s\n", endpoint.address().c_str());
  status = 0;
}

int main(int argc, char** argv) try {
  tls::ClientOptions tls;
  tls.on_failure = [](const tls::Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.message.c_str());
  };
  const std::string server = argc > 3 ? argv[1] : "192.0.2.1";
  const std::string name = argc > 3 ? argv[2] : "dns.example.org";
  dns::ResolverOptions options;
  options.servers = {or_throw(Endpoint::parse(server, dns::over_tls_port), server)};
  options.transport = dns::over_tls(or_throw(tls::ClientContext::create(tls)), name);
  EventLoop loop;
  dns::Resolver resolver(loop, options);
  int status = 1;
  spawn(loop, print_addresses(resolver, argc > 3 ? argv[3] : "localhost", status));
  loop.run();
  return status;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
