// A caching DNS server for a local network: passes questions on to the servers of resolv.conf(5),
// and answers repeated ones from its cache.
//
//   build/examples/dns_forwarder 192.168.1.1:53
//
// Without arguments, asks itself for "localhost".
#include <cstdio>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;

dns::Rcode code_of(const Error& error) {
  if (error == dns::ErrorCode::no_such_name) return dns::Rcode::no_such_name;
  if (error == dns::ErrorCode::no_data) return dns::Rcode::no_error;
  return error == dns::ErrorCode::refused ? dns::Rcode::refused : dns::Rcode::server_failure;
}

Task<> forward(dns::Resolver& resolver, const dns::Request& request, dns::Message& response) {
  response.recursion_available = true;
  const dns::Question& question = request.question();
  if (question.name == *dns::Name::parse("localhost")) {
    // RFC 6761: such names are not asked for in the DNS.
    if (question.type != dns::Type::a) co_return;
    response.answers.push_back({.name = question.name, .ttl = 60, .data = dns::A{{127, 0, 0, 1}}});
    co_return;
  }
  const auto found = co_await resolver.query(question.name, question.type);
  if (found) {
    response.answers = found->answers;
  } else {
    response.rcode = code_of(found.error());
  }
}

int main(int argc, char** argv) {
  EventLoop loop;
  dns::Resolver& resolver = dns::Resolver::of(loop);
  const Endpoint at =
      argc > 1 ? or_throw(Endpoint::parse(argv[1]), argv[1]) : Endpoint::loopback_v4(0);
  auto handler = [&resolver](const dns::Request& request, dns::Message& response) {
    return forward(resolver, request, response);
  };
  dns::Server server =
      or_throw(dns::Server::listen(loop, at, handler), "listen on " + at.to_string());
  std::printf("listening on %s\n", server.endpoint().to_string().c_str());
  if (argc > 1) {
    loop.run();
    return 0;
  }
  int status = 1;
  dns::Resolver client(loop, {.servers = {server.endpoint()}});
  spawn(loop, [](EventLoop& event_loop, dns::Resolver& from, int& outcome) -> Task<> {
    const auto found = co_await from.query("localhost", dns::Type::a);
    if (found) std::printf("%s\n", found->answers[0].to_string().c_str());
    outcome = found ? 0 : 1;
    event_loop.stop();
  }(loop, client, status));
  loop.run();
  return status;
}
