// Names that docs/testing.md does not declare.
using test::Call;
