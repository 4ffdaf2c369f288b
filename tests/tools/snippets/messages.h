// Names that docs/messages.md does not declare.
void serve(Connection& connection, Buffer& line);
