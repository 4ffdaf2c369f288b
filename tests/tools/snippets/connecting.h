// Names that docs/connecting.md does not declare.
extern ConnectOptions& options;
extern tls::ClientContext& tls;
void greet(Connection& connection);
void answer(Connection& connection, Buffer& buffer);
void note(Connection& connection, const Error& error);
void report(const ConnectFailure& failure);
Task<bool> ask();
