// Package schema defines the config document: its types, how it is read, and the errors for
// invalid ones.
//
// Every step of reading works on one small tree of nodes that know their line
// and column:
//
//	paths ─► files.go               bytes, each file read once
//	      ─► syntax                 a tree of nodes
//	      ─► host_document.go       spellings of hosts, converted to ours
//	      ─► env.go                 the variables that the document may refer to
//	      ─► interpolate.go         ${VAR} in the values below mcp, tree, gateway
//	      ─► decode.go              nodes into the types, by the tags in types.go
//	      ─► validate.go, tree.go   rules that the types cannot express
//	      ─► layers.go              one *Config of all files
//
// The error contains all problems, in file order (report.go).
// Adding and removing servers edits the text of a file (edit.go).
//
// The tags on the struct fields in types.go are the only table of keys: the
// decoder, the defaults and the JSON Schema are all read from them.
//
// The package writes nothing. It never puts an environment value, a header or a
// credential into an error.
package schema
