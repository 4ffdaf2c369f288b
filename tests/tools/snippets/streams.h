// Names that docs/streams.md does not declare.
// parameter: TcpServer& server
Task<Result<>> answer(TcpStream& peer, const Buffer& request);
void reply(Connection& connection, Buffer& buffer);
Buffer respond(Buffer request);
