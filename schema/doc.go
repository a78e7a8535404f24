// Package schema is the config document: what may be written in it, how it is
// read, and what is said when it is wrong.
//
// Reading goes one way, and every step works on one small tree of nodes that
// know their line and column:
//
//	bytes ─► jsonc.go or yaml.go    a tree of nodes
//	      ─► env.go                 the variables the document may refer to
//	      ─► interpolate.go         ${VAR} in the values below mcp, tree, gateway
//	      ─► decode.go              nodes into the types, by the tags in types.go
//	      ─► validate.go, tree.go   what types alone cannot say
//	      ─► *Config, or Errors with all that is wrong, in file order
//
// The tags on the struct fields in types.go are the only table of keys: the
// decoder, the defaults and the JSON Schema are all read from them.
//
// The package imports no other package of this module, starts nothing and
// writes nothing. It never puts an environment value, a header or a credential
// into an error.
package schema
