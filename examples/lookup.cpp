// Prints the addresses of a host, or the records of a name:
//
//   build/examples/lookup example.org
//   build/examples/lookup example.org MX
//   build/examples/lookup 192.0.2.1
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

Task<> print_names(dns::Resolver& resolver, Endpoint address, int& status) {
  const auto names = co_await resolver.reverse(address);
  if (!names) {
    std::fprintf(stderr, "%s: %s\n", address.address().c_str(), names.error().message().c_str());
    co_return;
  }
  for (const std::string& name : *names) std::printf("%s\n", name.c_str());
  status = 0;
}

Task<> print_records(dns::Resolver& resolver, std::string name, dns::Type type, int& status) {
  const auto message = co_await resolver.query(name, type);
  if (!message) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), message.error().message().c_str());
    co_return;
  }
  for (const dns::Record& answer : message->answers)
    std::printf("%s\n", answer.to_string().c_str());
  status = 0;
}

int main(int argc, char** argv) {
  EventLoop loop;
  dns::Resolver& resolver = dns::Resolver::of(loop);
  const std::string text = argc > 1 ? argv[1] : "localhost";
  int status = 1;
  if (argc > 2) {
    const dns::Type type = or_throw(dns::parse_type(argv[2]), argv[2]);
    spawn(loop, print_records(resolver, text, type, status));
  } else if (const auto address = Endpoint::parse(text, 0)) {
    spawn(loop, print_names(resolver, *address, status));
  } else {
    spawn(loop, print_addresses(resolver, text, status));
  }
  loop.run();
  return status;
}
